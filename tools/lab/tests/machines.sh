#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Test `lab run --on` with two ssh servers, which run as two users with directories of their own, and
# `lab run --slurm` with Debian's Slurm. Everything is in an overlay over this machine's root directory,
# without a network. machines.py has the cases. Needs root.

set -eu

here=$(cd "$(dirname "$0")" && pwd)
top=$(cd "$here/../../.." && pwd)

# ssh_host NAME PORT: a user with this name, with an ssh server of its own. The server hands each command to
# the script ~/command if there is one, with the command in $SSH_ORIGINAL_COMMAND.
ssh_host() {
	useradd --create-home --shell /bin/sh --password '*' "$1"
	home=/home/$1
	ssh-keygen -q -N '' -f "$home/key"
	cp "$work/key.pub" "$home/authorized_keys"
	cat >"$home/command.sh" <<-"END"
		[ ! -x ~/command ] || exec ~/command
		exec /bin/sh -c "$SSH_ORIGINAL_COMMAND"
	END
	cat >"$home/sshd_config" <<-END
		ListenAddress 127.0.0.1
		Port $2
		HostKey $home/key
		AuthorizedKeysFile $home/authorized_keys
		PasswordAuthentication no
		StrictModes no
		PidFile none
		ForceCommand /bin/sh $home/command.sh
	END
	chown "$1:" "$home"/*
	cat >>/etc/ssh/ssh_config.d/lab.conf <<-END
		Host $1
			HostName 127.0.0.1
			Port $2
			User $1
			IdentityFile $work/key
			UserKnownHostsFile /dev/null
			StrictHostKeyChecking no
			LogLevel ERROR
	END
	runuser -u "$1" -- /usr/sbin/sshd -f "$home/sshd_config" -E "$home/sshd.log"
}

# One node with two processors. Daemons of Slurm authenticate by munge.
slurm_cluster() {
	install -d -o munge -g munge /run/munge
	runuser -u munge -- /usr/sbin/munged
	mkdir -p /etc/slurm /run/slurm-d /run/slurm-ctld
	cat >/etc/slurm/slurm.conf <<-END
		ClusterName=lab
		SlurmUser=root
		SlurmctldHost=$(hostname -s)(127.0.0.1)
		StateSaveLocation=/run/slurm-ctld
		SlurmdSpoolDir=/run/slurm-d
		SlurmctldPidFile=/run/slurmctld.pid
		SlurmdPidFile=/run/slurmd.pid
		SlurmctldLogFile=/run/slurmctld.log
		SlurmdLogFile=/run/slurmd.log
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		ReturnToService=2
		SchedulerType=sched/builtin
		SchedulerParameters=sched_interval=1,batch_sched_delay=0
		KillWait=2
		TaskProlog=/etc/slurm/prolog
		NodeName=node NodeHostname=$(hostname -s) NodeAddr=127.0.0.1 CPUs=2
		PartitionName=all Nodes=node Default=YES
	END
	# Before each task the file that /run/spoil names is changed.
	cat >/etc/slurm/prolog <<-"END"
		#!/bin/sh
		[ ! -e /run/spoil ] || echo >>"$(cat /run/spoil)"
	END
	chmod +x /etc/slurm/prolog
	/usr/sbin/slurmctld
	/usr/sbin/slurmd -N node
}

case ${1-} in
--isolated)
	ip link set lo up
	# Slurm looks for addresses only if there is one that is not of the loopback network.
	ip addr add 10.0.0.1/32 dev lo
	ssh-keygen -q -N '' -f "$work/key"
	ssh_host alpha 2201
	ssh_host beta 2202
	slurm_cluster
	exec env PYTHONDONTWRITEBYTECODE=1 /usr/bin/python3 "$here/machines.py" -v
	;;
--in-overlay)
	"$top/tools/setup.sh" parallel rsync openssh-client openssh-server munge slurmd slurmctld slurm-client
	exec unshare -n -p -f --kill-child --mount-proc "$here/machines.sh" --isolated
	;;
esac

work=$(mktemp -d)
export work
trap 'rm -rf "$work"' EXIT
trap 'exit 130' HUP INT TERM
# These results of this machine are what other machines must give. The run also builds what is not built yet.
"$top/tools/lab/lab" run alone --cc timely,cubic+onramp,cubic --seeds 1 --set run.warmup_ms=20 \
	--set run.measure_ms=30 --jobs 1 --out "$work/here"
"$top/tools/overlay.sh" "$here/machines.sh" --in-overlay
