// SPDX-License-Identifier: GPL-2.0
/*
 * `timelyctl watch`: a view of the connections that use timely, which is drawn again at regular
 * intervals until a key ends it.
 *
 * The view needs only the escape sequences that all terminals have in common. Signals are read from
 * a file, so that nothing interrupts drawing, and the terminal is restored before the program stops
 * or ends.
 */
#define _GNU_SOURCE
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <termios.h>
#include <time.h>
#include <unistd.h>

#include <sys/ioctl.h>
#include <sys/signalfd.h>

#include "timelyctl.h"

#define ESCAPE		"\033["
#define ENTER_SCREEN	ESCAPE "?1049h" ESCAPE "?25l"	/* the other screen, without a cursor */
#define LEAVE_SCREEN	ESCAPE "?25h" ESCAPE "?1049l"
#define HOME		ESCAPE "H"
#define CLEAR_LINE	ESCAPE "K"
#define CLEAR_BELOW	ESCAPE "J"
#define REVERSE		ESCAPE "7m"
#define NORMAL		ESCAPE "0m"

/* Lines of the screen beside connections: the title, the headings, and the keys. */
#define OTHER_LINES	3

/**
 * struct view - state of the view
 * @family: module timely
 * @choice: which connections are shown, and their order
 * @limit: number of connections that the user wants to see; 0: all
 * @list: the worst connections, up to the last one on the screen
 * @first: index of the first connection on the screen
 * @held: all connections were read, and are not read again until a key is pressed
 * @due_ms: when the connections are read again, by now_ms()
 * @signals: file that signals are read from
 * @rows: height of the screen
 * @columns: width of the screen
 */
struct view {
	struct family family;
	struct choice choice;
	size_t limit;
	struct connections list;
	size_t first;
	bool held;
	__u64 due_ms;
	int signals;
	unsigned int rows;
	unsigned int columns;
};

/* ---- the terminal ---- */

static struct termios terminal_before;
static bool terminal_changed;

static void restore_terminal(void)
{
	if (!terminal_changed)
		return;
	terminal_changed = false;
	fputs(LEAVE_SCREEN, stdout);
	fflush(stdout);
	tcsetattr(STDIN_FILENO, TCSANOW, &terminal_before);
}

/* Keys are read at once and not shown. Keys such as Ctrl-C still send signals. */
static void change_terminal(void)
{
	struct termios keys;

	if (tcgetattr(STDIN_FILENO, &terminal_before))
		return;
	terminal_changed = true;
	keys = terminal_before;
	keys.c_lflag &= ~(ICANON | ECHO);
	keys.c_cc[VMIN] = 1;
	keys.c_cc[VTIME] = 0;
	tcsetattr(STDIN_FILENO, TCSANOW, &keys);
	fputs(ENTER_SCREEN, stdout);
}

static void read_size(struct view *view)
{
	struct winsize size;

	view->rows = 24;
	view->columns = 80;
	if (!ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) && size.ws_row && size.ws_col) {
		view->rows = size.ws_row;
		view->columns = size.ws_col;
	}
}

/* ---- drawing ---- */

/* One line of the screen, cut to its width. */
static void put_line(const struct view *view, const char *text)
{
	printf(CLEAR_LINE "%.*s", (int)view->columns, text);
}

static size_t page_lines(const struct view *view)
{
	return view->rows > OTHER_LINES ? view->rows - OTHER_LINES : 1;
}

/* The number of connections that can be shown by scrolling. */
static size_t reachable(const struct view *view)
{
	size_t matching = view->list.matching;

	return view->limit && view->limit < matching ? view->limit : matching;
}

/* Keep a full page on the screen. */
static void limit_first(struct view *view)
{
	size_t lines = page_lines(view), count = reachable(view);

	if (view->first + lines > count)
		view->first = count > lines ? count - lines : 0;
}

static void draw(struct view *view)
{
	static const char keys_text[] =
		"q: quit  d r c p: sort by delay, rate, cuts, pauses  space: hold  j k: scroll";
	size_t lines = page_lines(view);
	char text[CONNECTION_TEXT];

	limit_first(view);
	fputs(HOME, stdout);
	snprintf(text, sizeof(text), "%zu connections, worst %s first, %zu to %zu shown%s",
		 view->list.matching, order_name(view->choice.order),
		 view->list.count ? view->first + 1 : 0,
		 view->first + lines < view->list.count ? view->first + lines : view->list.count,
		 view->held ? "; HELD: space goes on" : "");
	put_line(view, text);
	fputs("\n" REVERSE, stdout);
	put_line(view, narrow_headings(text, sizeof(text)));
	fputs(NORMAL "\n", stdout);
	for (size_t i = view->first; i < view->list.count && i < view->first + lines; i++) {
		put_line(view, narrow_text(text, sizeof(text), &view->list.connection[i]));
		putchar('\n');
	}
	fputs(CLEAR_BELOW, stdout);
	printf(ESCAPE "%uH", view->rows);
	put_line(view, keys_text);
	fflush(stdout);
}

/* ---- events ---- */

/*
 * Read the connections up to the last one on the screen: a poll of many costs less without the
 * others. A view that is held needs all, to scroll. Prints errors, after the terminal is restored;
 * returns an exit status.
 */
static int read_connections(struct view *view)
{
	size_t last = view->first + page_lines(view);
	int err;

	view->choice.limit = view->limit;
	if (!view->held && (!view->limit || last < view->limit))
		view->choice.limit = last;
	err = connections_get(&view->family, &view->choice, &view->list);
	if (err) {
		restore_terminal();
		connections_tell_failed(&view->family, "watch", err);
		return STATUS_FAILED;
	}
	return STATUS_OK;
}

/* Read the connections before the next drawing, unless the view is held. */
static void read_soon(struct view *view)
{
	if (!view->held)
		view->due_ms = 0;
}

/* Those that are the worst in the new order may not have been kept: read them again. */
static void sort_by(struct view *view, enum order order)
{
	view->choice.order = order;
	view->first = 0;
	read_soon(view);
	connections_sort(&view->list, &view->choice);
}

/* Handle a key. Returns false for the key that ends the program. */
static bool handle_key(struct view *view, char key)
{
	switch (key) {
	case 'q':
		return false;
	case 'd':
		sort_by(view, ORDER_DELAY);
		break;
	case 'r':
		sort_by(view, ORDER_RATE);
		break;
	case 'c':
		sort_by(view, ORDER_CUTS);
		break;
	case 'p':
		sort_by(view, ORDER_PAUSES);
		break;
	case ' ':
		view->held = !view->held;
		view->due_ms = 0;
		break;
	case 'j':
		view->first += page_lines(view);
		limit_first(view);
		read_soon(view);
		break;
	case 'k':
		view->first -= view->first < page_lines(view) ? view->first : page_lines(view);
		break;
	}
	return true;
}

/* The key at @keys[*i]. Arrow and page keys, which send a sequence, become k and j. */
static char key_at(const char *keys, ssize_t count, ssize_t *i)
{
	if (keys[*i] != ESCAPE[0] || *i + 2 >= count || keys[*i + 1] != ESCAPE[1])
		return keys[*i];
	*i += 2;
	switch (keys[*i]) {
	case 'A':
	case '5':
		return 'k';
	case 'B':
	case '6':
		return 'j';
	}
	return 0;
}

/* Read the keys. Returns false if the program shall end: q, or the terminal is gone. */
static bool handle_keys(struct view *view)
{
	char keys[64];
	ssize_t count = read(STDIN_FILENO, keys, sizeof(keys));

	if (count <= 0)
		return false;
	for (ssize_t i = 0; i < count; i++)
		if (!handle_key(view, key_at(keys, count, &i)))
			return false;
	return true;
}

/* Restore the terminal, then do what the signal does to programs that do not handle it. */
static void yield_to(struct view *view, int signal)
{
	sigset_t one;

	restore_terminal();
	sigemptyset(&one);
	sigaddset(&one, signal);
	raise(signal);
	/* The signal ends or stops the program here. */
	sigprocmask(SIG_UNBLOCK, &one, NULL);
	/* After SIGCONT: */
	sigprocmask(SIG_BLOCK, &one, NULL);
	change_terminal();
	read_size(view);
}

static void handle_signal(struct view *view)
{
	struct signalfd_siginfo info;

	if (read(view->signals, &info, sizeof(info)) != sizeof(info))
		return;
	if (info.ssi_signo == SIGWINCH)
		read_size(view);
	else
		yield_to(view, info.ssi_signo);
	/* The screen may be larger now. */
	read_soon(view);
}

static __u64 now_ms(void)
{
	struct timespec now;

	clock_gettime(CLOCK_MONOTONIC, &now);
	return now.tv_sec * 1000ULL + now.tv_nsec / 1000000;
}

/* Draw until a key or an error ends the program. Returns an exit status. */
static int run(struct view *view)
{
	struct pollfd files[] = {
		{ .fd = STDIN_FILENO, .events = POLLIN },
		{ .fd = view->signals, .events = POLLIN },
	};

	while (!ferror(stdout)) {
		__u64 now = now_ms();

		if (now >= view->due_ms) {
			if (read_connections(view))
				return STATUS_FAILED;
			view->due_ms = view->held ? UINT64_MAX : now + view->choice.interval_ms;
		}
		draw(view);
		if (poll(files, ARRAY_SIZE(files), view->held ? -1 : (int)(view->due_ms - now)) < 0)
			continue;
		if (files[1].revents)
			handle_signal(view);
		if (files[0].revents && !handle_keys(view))
			break;
	}
	return STATUS_OK;
}

/* Open a file to read those signals from that would otherwise end or stop the program. */
static int open_signals(void)
{
	static const int numbers[] = { SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP, SIGWINCH };
	sigset_t signals;

	sigemptyset(&signals);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++)
		sigaddset(&signals, numbers[i]);
	if (sigprocmask(SIG_BLOCK, &signals, NULL))
		return -1;
	return signalfd(-1, &signals, SFD_CLOEXEC);
}

int command_watch(char **words, int count, bool json)
{
	struct view view = { .choice.interval_ms = 1000 };
	int status = choice_parse("watch", words, count, WORD_INTERVAL, &view.choice);

	if (status)
		return status;
	view.limit = view.choice.limit;
	if (json)
		return usage_err("watch: -j is not possible; timelyctl record writes a file");
	if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO)) {
		tell_err("watch needs a terminal; timelyctl flows prints once, timelyctl record writes a file");
		return STATUS_FAILED;
	}
	if (!connections_open(&view.family))
		return STATUS_FAILED;
	/* An error of the first reading leaves the terminal as it is. */
	read_size(&view);
	status = read_connections(&view);
	if (!status) {
		view.signals = open_signals();
		atexit(restore_terminal);
		change_terminal();
		status = run(&view);
		restore_terminal();
	}
	connections_free(&view.list);
	family_close(&view.family);
	return status;
}
