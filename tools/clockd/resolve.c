// SPDX-License-Identifier: GPL-2.0
/*
 * Names in the list of members. A child process resolves them, because a name server may take
 * minutes to answer, and probes must not wait. The child writes the addresses to a pipe.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <string.h>
#include <unistd.h>

#include <sys/prctl.h>
#include <sys/wait.h>

#include "clockd.h"

/* What the child process writes: an address, and a hash of its name. */
struct answer {
	uint64_t name;
	struct address address;
};

static uint64_t hash_name(const char *name)
{
	return hash_words(0, name, strlen(name));
}

/*
 * Write an address of a name, unless other hosts cannot reach it: in Debian's /etc/hosts this
 * host's name has the address 127.0.1.1. Returns false if it cannot be written.
 */
static bool write_address(const char *name, const struct address *address, int fd)
{
	struct answer answer = { .name = hash_name(name), .address = *address };
	char text[ADDRESS_TEXT];

	if (address_of_one_host(address) && !address_is_loopback(address))
		return write(fd, &answer, sizeof(answer)) == sizeof(answer);
	tell_warn("member \"%s\" has the address %s here, which other hosts cannot reach: the address is ignored: correct /etc/hosts or the name server; if the member is this host, its address can be given by own",
		  name, address_text(text, address));
	return true;
}

/* Write the addresses that the name had before. */
static void keep_addresses(const struct resolver *resolver, const char *name, int fd)
{
	uint64_t hash = hash_name(name);

	for (size_t i = 0; i < resolver->found.count; i++)
		if (resolver->found_name[i] == hash &&
		    !write_address(name, &resolver->found.address[i], fd))
			return;
}

/*
 * Write all addresses of a name. Prints an error if there is none. If the name server has not
 * answered, the name keeps the addresses that it had before.
 */
static void resolve_name(const struct resolver *resolver, const struct config *config,
			 const char *name, int fd)
{
	struct addrinfo hints = { .ai_family = config->family, .ai_socktype = SOCK_DGRAM };
	struct addrinfo *list, *each;
	struct address address;
	int err = getaddrinfo(name, NULL, &hints, &list);

	if (err) {
		tell_warn("member \"%s\" has no %s address: %s; it is tried again",
			  name, config->family == AF_INET ? "IPv4" : "IPv6", gai_strerror(err));
		if (err != EAI_NONAME && err != EAI_NODATA && err != EAI_ADDRFAMILY)
			keep_addresses(resolver, name, fd);
		return;
	}
	for (each = list; each; each = each->ai_next) {
		address_from(&address, (const struct sockaddr_storage *)each->ai_addr);
		if (!write_address(name, &address, fd))
			break;
	}
	freeaddrinfo(list);
}

/*
 * In the child process: drop keys and privileges, and keep the pipe only, as file 3. A name server
 * may take minutes, and a daemon that is started again meanwhile needs the UDP port. End with the
 * daemon.
 */
static void leave_daemon(int *fd, struct config *config)
{
	sigset_t none;

	/* This process reads what name servers and their libraries send. */
	explicit_bzero(config->keys, sizeof(config->keys));
	if (drop_capabilities(false))
		_exit(1);
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	if (*fd != 3)
		*fd = dup2(*fd, 3);
	close_range(4, ~0U, 0);
}

/* The child process overwrites the keys in its copy of @config. */
int resolver_start(struct resolver *resolver, struct config *config)
{
	int ends[2], err;

	if (pipe2(ends, O_CLOEXEC))
		return -errno;
	resolver->pid = fork();
	if (!resolver->pid) {
		leave_daemon(&ends[1], config);
		for (size_t i = 0; i < config->name_count; i++)
			resolve_name(resolver, config, config->names[i], ends[1]);
		_exit(0);
	}
	err = -errno;
	close(ends[1]);
	if (resolver->pid < 0) {
		resolver->pid = 0;
		close(ends[0]);
		return err;
	}
	resolver->fd = ends[0];
	fcntl(resolver->fd, F_SETFL, O_NONBLOCK);
	return 0;
}

bool resolver_read(struct resolver *resolver)
{
	struct answer answer;
	ssize_t bytes;
	int status;

	/* Writes of one answer are not divided: they are shorter than PIPE_BUF. */
	while ((bytes = read(resolver->fd, &answer, sizeof(answer))) == sizeof(answer))
		if (members_add(&resolver->next, &answer.address))
			resolver->next_name[resolver->next.count - 1] = answer.name;
	if (bytes < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	close(resolver->fd);
	if (waitpid(resolver->pid, &status, 0) < 0)
		status = -1;
	resolver->pid = 0;
	/* Without any address, or if the process was killed, the addresses of before remain. */
	if (resolver->next.count && !status) {
		members_free(&resolver->found);
		resolver->found = resolver->next;
		memcpy(resolver->found_name, resolver->next_name, sizeof(resolver->found_name));
		resolver->next = (struct members){};
	}
	members_free(&resolver->next);
	return true;
}

/* @keep: the addresses found so far stay, until those of the next process are known */
void resolver_stop(struct resolver *resolver, bool keep)
{
	if (resolver->pid) {
		kill(resolver->pid, SIGKILL);
		waitpid(resolver->pid, NULL, 0);
		close(resolver->fd);
		resolver->pid = 0;
	}
	if (!keep)
		members_free(&resolver->found);
	members_free(&resolver->next);
}
