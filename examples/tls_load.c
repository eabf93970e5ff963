/* SPDX-License-Identifier: Apache-2.0 */
/* Full TLS 1.3 handshakes with a server on this machine, one after the other in each of some threads, for some seconds. A server
 * that speaks first is listened to; another one is asked for a page.
 *
 *   cc -O2 tls_load.c -o tls_load -lssl -lcrypto -lpthread
 *   ./tls_load 4433 cert.pem 16 5 [page]
 */
#include <netinet/in.h>
#include <openssl/ssl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#define MOST 200000

static const char request[] = "GET / HTTP/1.0\r\n\r\n";
static int asks;
static SSL_CTX *context;
static struct sockaddr_in address;
static double end;
static atomic_long failures;
static atomic_int count;
static double times[MOST];

static double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static void *load(void *argument)
{
	(void)argument;
	while (now() < end) {
		double before = now();
		char line[16];
		int connection = socket(AF_INET, SOCK_STREAM, 0);
		SSL *ssl = SSL_new(context);
		SSL_set_fd(ssl, connection);
		int good = connect(connection, (struct sockaddr *)&address, sizeof(address)) == 0 &&
			   SSL_connect(ssl) == 1 && !SSL_session_reused(ssl) &&
			   (!asks || SSL_write(ssl, request, sizeof(request) - 1) > 0) &&
			   SSL_read(ssl, line, sizeof(line)) > 0;
		SSL_free(ssl);
		close(connection);
		if (!good) {
			failures++;
			continue;
		}
		int at = count++;
		if (at < MOST) times[at] = now() - before;
	}
	return NULL;
}

static int compare(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;
	return (x > y) - (x < y);
}

int main(int argc, char **argv)
{
	if (argc != 5 && argc != 6) {
		fprintf(stderr, "usage: tls_load PORT CERTIFICATE THREADS SECONDS [page]\n");
		return 2;
	}
	asks = argc == 6;
	context = SSL_CTX_new(TLS_client_method());
	SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION);
	SSL_CTX_set_verify(context, SSL_VERIFY_PEER, NULL);
	if (SSL_CTX_load_verify_locations(context, argv[2], NULL) != 1) return 1;
	address.sin_family = AF_INET;
	address.sin_port = htons((unsigned short)atoi(argv[1]));
	address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	double start = now(), seconds = atof(argv[4]);
	end = start + (seconds < 60 ? seconds : 60);
	int threads = atoi(argv[3]) < 256 ? atoi(argv[3]) : 256;
	pthread_t thread[256];
	for (int at = 0; at < threads; at++)
		if (pthread_create(&thread[at], NULL, load, NULL)) return 1;
	for (int at = 0; at < threads; at++) pthread_join(thread[at], NULL);
	double took = now() - start;
	int all = count < MOST ? count : MOST;
	qsort(times, (size_t)all, sizeof(times[0]), compare);
	printf("{\"handshakes\": %d, \"failures\": %ld, \"seconds\": %.3f, \"p50_ms\": %.3f, \"p99_ms\": %.3f}\n",
	       (int)count, (long)failures, took, all ? 1e3 * times[all / 2] : 0,
	       all ? 1e3 * times[all / 100 * 99] : 0);
	return failures != 0;
}
