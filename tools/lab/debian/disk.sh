#!/bin/sh
# SPDX-License-Identifier: GPL-2.0
#
# Make a disk image with a Debian system that QEMU can boot, in $TIMELY_CACHE. Print its directory, which
# has the disk (a file system without partitions), the kernel vmlinuz and its initrd. All other output goes
# to standard error. An image that is in the cache is used again. Needs root.
#
#   disk.sh bookworm|trixie
#
# The system has DKMS, the headers of its kernel, and the packages with which apt can upgrade the kernel
# to that of backports without a network. At boot it mounts the directory that QEMU shares under the name
# "share" as /share, and runs /share/run. eth0 gets the address 10.9.0.1. With init=/usr/local/sbin/answer the system
# starts nothing else: it has the addresses 10.9.0.2 and 10.1.0.1, and answers each connection to port 5000 with the
# SHA-256 of what it has received.

set -eu
umask 022

here=$(cd "$(dirname "$0")" && pwd)
# shellcheck source=debian.sh
. "$here/debian.sh"

suite=${1:?usage: disk.sh bookworm|trixie}
# One line each for the kernel and DKMS, for timely's packages, for the walk-through, for packaging/examples.
packages="
	linux-image-amd64 linux-headers-amd64 dkms zstd
	libmnl0 mokutil openssl python3
	ccache curl prometheus-node-exporter socat
	ansible-core cloud-init ifupdown network-manager sudo
"
# Drivers of kernels that the emulated system does not need: depmod and dpkg read all that are installed.
drivers="
	sound drivers/bluetooth drivers/comedi drivers/gpu drivers/hid drivers/hwmon drivers/iio drivers/infiniband drivers/input
	drivers/media drivers/mtd drivers/net/ethernet drivers/net/usb drivers/net/wireless drivers/platform drivers/scsi drivers/usb
"
dir=$cache/disk-$suite-$(sha256sum <"$0" | cut -c1-12)

mkdir -p "$cache"
exec 9>"$cache/lock-disk-$suite"
flock 9
if [ -e "$dir" ]; then
	echo "$dir"
	exit 0
fi

debian=$(mirror Debian) && security=$(mirror Debian-Security) || exit 1
tmp=$(mktemp -d -p "$cache")
trap 'rm -rf "$tmp"' EXIT
trap 'exit 1' HUP INT TERM
root=$tmp/root

# What runs in the new system's root directory.
in_root() { DEBIAN_FRONTEND=noninteractive chroot "$root" "$@" >>"$tmp/log" 2>&1 || { tail -n 20 "$tmp/log" >&2; die "failed: $*"; }; }

set --
for directory in $drivers; do
	set -- "$@" --dpkgopt="path-exclude=/lib/modules/*/kernel/$directory/*" \
		--dpkgopt="path-exclude=/usr/lib/modules/*/kernel/$directory/*"
done
say "making a disk image of $suite (minutes)"
# shellcheck disable=SC2086 # a list of packages
mmdebstrap --mode=root --variant=important --include="$(echo $packages | tr ' ' ',')" --keyring="$keyring" \
	--aptopt='Acquire::Languages "none"' "$@" "$suite" "$root" "deb $debian $suite main" \
	"deb $security $suite-security main" "deb $debian $suite-backports main" >"$tmp/log" 2>&1 9>&- ||
	{ tail -n 20 "$tmp/log" >&2; die "mmdebstrap failed, see above"; }
in_root apt-get update
in_root apt-get -y --no-install-recommends --download-only -t "$suite-backports" install \
	linux-image-amd64 linux-headers-amd64

cat >"$root/etc/fstab" <<-END
	/dev/vda / ext4 defaults 0 1
	share /share 9p trans=virtio,version=9p2000.L,msize=262144 0 0
END
cat >"$root/etc/systemd/network/wire.network" <<-END
	[Match]
	Name=eth0
	[Network]
	Address=10.9.0.1/24
END
cat >"$root/usr/local/sbin/answer" <<-END
	#!/bin/sh
	modprobe virtio_net
	ip link set lo up
	ip address add 10.1.0.1/32 dev lo
	ip link set eth0 up
	ip address add 10.9.0.2/24 dev eth0
	exec socat -t 3600 TCP-LISTEN:5000,fork,reuseaddr SYSTEM:sha256sum
END
chmod +x "$root/usr/local/sbin/answer"
# A smaller initrd of the new kernel takes less time to build and to boot.
printf 'MODULES=dep\nCOMPRESSLEVEL=1\n' >"$root/etc/initramfs-tools/conf.d/small"
# cloud-init does what the user data says, and nothing else to the system; only if the host has given it such data.
cat >"$root/etc/cloud/cloud.cfg.d/99-only-user-data.cfg" <<-END
	datasource_list: [NoCloud]
	network: {config: disabled}
	cloud_init_modules: [write_files]
	cloud_config_modules: [runcmd]
	cloud_final_modules: [scripts-user]
END
# A service of the type oneshot would be part of the boot, which then would not end before /share/run.
cat >"$root/etc/systemd/system/run-shared.service" <<-END
	[Unit]
	Description=Run the script that the host shares
	After=multi-user.target
	RequiresMountsFor=/share
	[Service]
	ExecStart=/bin/sh /share/run
	[Install]
	WantedBy=multi-user.target
END
mkdir "$root/share"
echo walk >"$root/etc/hostname"
rm -f "$root/etc/resolv.conf"
# The timers of apt would lock dpkg's database.
in_root systemctl mask apt-daily.timer apt-daily-upgrade.timer
in_root systemctl enable run-shared.service systemd-networkd.service
in_root systemctl disable NetworkManager.service NetworkManager-wait-online.service

mkdir "$tmp/new"
cp -L "$root/vmlinuz" "$tmp/new/vmlinuz"
cp -L "$root/initrd.img" "$tmp/new/initrd"
mke2fs -q -t ext4 -d "$root" "$tmp/new/disk" 8G >&2 || die "mke2fs failed, see above"
mv "$tmp/new" "$dir"
say "the disk image is in $dir"
echo "$dir"
