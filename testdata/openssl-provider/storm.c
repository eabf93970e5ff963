/* SPDX-License-Identifier: Apache-2.0 */
/* Many handshakes with a server on this machine, all under way at once: `storm PORT CERTIFICATE CONCURRENT TOTAL`. Each asks for a page and has
 * to be answered. They are spread over 127.0.0.1 to 127.0.0.4, for the system keeps some thousand for each address until they are accepted. Prints
 * `failed ADDRESS PORT-OF-OURS SECONDS-SINCE-1970 WHAT` for each that fails, with the last number of the server's address, and at the end
 * `done GOOD FAILED P50-MS P99-MS MAX-MS`.
 */
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

enum stage { CONNECT, HANDSHAKE, ASK, ANSWER };
static const char *const names[] = {"connect", "handshake", "request", "answer"};
static const char request[] = "GET / HTTP/1.0\r\n\r\n";

struct one {
	SSL *ssl;
	int socket, address;
	enum stage stage;
	double began;
};

static SSL_CTX *context;
static struct sockaddr_in address;
static int queue;
static long begun, good, failed;
static double *times;

/* So long one may take. */
#define PATIENCE 60.0

static double now(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void wait_for(struct one *one, int add, unsigned events)
{
	struct epoll_event event = {.events = events, .data.ptr = one};
	epoll_ctl(queue, add ? EPOLL_CTL_ADD : EPOLL_CTL_MOD, one->socket, &event);
}

static void begin(struct one *one)
{
	begun++;
	one->began = now(CLOCK_MONOTONIC);
	one->stage = CONNECT;
	one->address = 1 + (int)(begun % 4);
	address.sin_addr.s_addr = htonl(0x7f000000 + (unsigned)one->address);
	one->socket = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK, 0);
	one->ssl = SSL_new(context);
	SSL_set_fd(one->ssl, one->socket);
	if (connect(one->socket, (struct sockaddr *)&address, sizeof(address)) && errno != EINPROGRESS) perror("connect");
	wait_for(one, 1, EPOLLOUT);
}

/* The next one takes its place. */
static void end(struct one *one, int is_good, const char *why, long total)
{
	struct sockaddr_in own = {0};
	socklen_t length = sizeof(own);
	getsockname(one->socket, (struct sockaddr *)&own, &length);
	if (is_good) {
		times[good++] = now(CLOCK_MONOTONIC) - one->began;
	} else {
		failed++;
		printf("failed %d %d %.3f %s: %s\n", one->address, ntohs(own.sin_port), now(CLOCK_REALTIME), names[one->stage], why);
	}
	SSL_free(one->ssl);
	close(one->socket);
	one->ssl = NULL;
	if (begun < total) begin(one);
}

static void go_on(struct one *one, long total)
{
	char page[256];
	int error = 0, answer;
	socklen_t length = sizeof(error);
	if (one->stage == CONNECT) {
		getsockopt(one->socket, SOL_SOCKET, SO_ERROR, &error, &length);
		if (error) {
			end(one, 0, strerror(error), total);
			return;
		}
		one->stage = HANDSHAKE;
	}
	for (;;) {
		errno = 0;
		switch (one->stage) {
		case HANDSHAKE: answer = SSL_connect(one->ssl); break;
		case ASK: answer = SSL_write(one->ssl, request, sizeof(request) - 1); break;
		default: answer = SSL_read(one->ssl, page, sizeof(page));
		}
		if (answer <= 0) break;
		if (one->stage == ANSWER) {
			end(one, 1, "", total);
			return;
		}
		one->stage++;
	}
	switch (SSL_get_error(one->ssl, answer)) {
	case SSL_ERROR_WANT_READ: wait_for(one, 0, EPOLLIN); break;
	case SSL_ERROR_WANT_WRITE: wait_for(one, 0, EPOLLOUT); break;
	default: end(one, 0, errno ? strerror(errno) : "the server ended it", total);
	}
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 5) return 2;
	/* A killed worker is an error of one connection. */
	signal(SIGPIPE, SIG_IGN);
	long count = atol(argv[3]), total = atol(argv[4]);
	struct one *all = calloc((size_t)count, sizeof(*all));
	times = calloc((size_t)total, sizeof(*times));
	context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1) return 1;
	address.sin_family = AF_INET;
	address.sin_port = htons((unsigned short)atoi(argv[1]));
	queue = epoll_create1(0);
	for (long at = 0; at < count && begun < total; at++) begin(&all[at]);
	double looked = now(CLOCK_MONOTONIC);
	while (good + failed < total) {
		struct epoll_event ready[256];
		int number = epoll_wait(queue, ready, 256, 1000);
		for (int at = 0; at < number; at++) {
			struct one *one = ready[at].data.ptr;
			if (one->ssl) go_on(one, total);
		}
		if (now(CLOCK_MONOTONIC) < looked + 1) continue;
		looked = now(CLOCK_MONOTONIC);
		for (long at = 0; at < count; at++)
			if (all[at].ssl && looked > all[at].began + PATIENCE) end(&all[at], 0, "not in time", total);
	}
	qsort(times, (size_t)good, sizeof(times[0]), compare);
	printf("done %ld %ld %.1f %.1f %.1f\n", good, failed, good ? 1e3 * times[good / 2] : 0,
	       good ? 1e3 * times[good / 100 * 99] : 0, good ? 1e3 * times[good - 1] : 0);
	return 0;
}
