/* SPDX-License-Identifier: Apache-2.0 */
/* What `openssl speed` does, with a key that is named instead of one that it makes: signatures or agreements with one key, by some
 * processes, each with some jobs (ASYNC_start_job(3)) or without, for some seconds.
 *
 *   cc -O2 openssl_loop.c -o openssl_loop -lcrypto
 *   ./openssl_loop 'pkcs11:object=site;type=private' sign 2 16 1     2 processes with 16 jobs each, for a second
 *   ./openssl_loop site.key X25519 1 0 1                             agreement with a new key of that group, without jobs
 *
 * Prints a line of JSON: operations, processor time of all processes, and wall time, in nanoseconds.
 */
#include <openssl/async.h>
#include <openssl/err.h>
#include <openssl/evp.h>
#include <openssl/store.h>
#include <openssl/x509.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define MOST_JOBS 1024
#define MOST_PROCESSES 256

/* What a job works with. */
struct work {
	EVP_PKEY_CTX *context;
	EVP_MD_CTX *message;
	unsigned char output[1024];
};

struct result {
	long operations;
	double cpu, wall;
	char error[200];
};

static EVP_PKEY *key, *peer;
static double end;
static long operations;
static const char *failure;
/* As `openssl speed` has them: 36 bytes for RSA, 20 otherwise. */
static const unsigned char data[36] = {1, 2, 3};

static double now(clockid_t clock)
{
	struct timespec at;
	clock_gettime(clock, &at);
	return 1e9 * (double)at.tv_sec + (double)at.tv_nsec;
}

static EVP_PKEY *load(const char *name)
{
	OSSL_STORE_CTX *store = OSSL_STORE_open(name, NULL, NULL, NULL, NULL);
	EVP_PKEY *found = NULL;
	while (store && !found && !OSSL_STORE_eof(store)) {
		OSSL_STORE_INFO *info = OSSL_STORE_load(store);
		if (info && OSSL_STORE_INFO_get_type(info) == OSSL_STORE_INFO_PKEY)
			found = OSSL_STORE_INFO_get1_PKEY(info);
		OSSL_STORE_INFO_free(info);
	}
	OSSL_STORE_close(store);
	return found;
}

/* The public half of a new key of OpenSSL's own in the group: the other side of an agreement. */
static EVP_PKEY *other(const char *group)
{
	const char *own = "provider=default";
	EVP_PKEY *whole = group[0] == 'X' ? EVP_PKEY_Q_keygen(NULL, own, group) : EVP_PKEY_Q_keygen(NULL, own, "EC", group);
	unsigned char *der = NULL;
	int length = whole ? i2d_PUBKEY(whole, &der) : 0;
	const unsigned char *at = der;
	return length > 0 ? d2i_PUBKEY(NULL, &at, length) : NULL;
}

static int prepare(struct work *work)
{
	if (EVP_PKEY_is_a(key, "ED25519")) {
		work->message = EVP_MD_CTX_new();
		return EVP_DigestSignInit_ex(work->message, NULL, NULL, NULL, NULL, key, NULL) == 1;
	}
	work->context = EVP_PKEY_CTX_new_from_pkey(NULL, key, NULL);
	if (!work->context) return 0;
	if (!peer) return EVP_PKEY_sign_init(work->context) == 1;
	return EVP_PKEY_derive_init(work->context) == 1 && EVP_PKEY_derive_set_peer(work->context, peer) == 1;
}

static int once(struct work *work)
{
	size_t length = sizeof(work->output);
	if (work->message) return EVP_DigestSign(work->message, work->output, &length, data, 20) == 1;
	if (peer) return EVP_PKEY_derive(work->context, work->output, &length) == 1;
	return EVP_PKEY_sign(work->context, work->output, &length, data, EVP_PKEY_is_a(key, "RSA") ? 36 : 20) == 1;
}

/* One job, or all there is without jobs. */
static int run(void *argument)
{
	struct work *work = *(struct work **)argument;
	while (!failure && now(CLOCK_MONOTONIC) < end) {
		if (!once(work)) failure = "an operation failed";
		operations++;
	}
	return 1;
}

/* Starts all jobs, and goes on with those whose descriptors are ready until the last has ended. */
static void run_jobs(struct work *works, int count)
{
	static ASYNC_JOB *jobs[MOST_JOBS];
	static ASYNC_WAIT_CTX *waits[MOST_JOBS];
	static struct pollfd ready[MOST_JOBS];
	static int ended[MOST_JOBS];
	if (!ASYNC_init_thread((size_t)count, (size_t)count)) {
		failure = "no jobs";
		return;
	}
	for (int at = 0; at < count; at++) waits[at] = ASYNC_WAIT_CTX_new();
	for (int left = count, first = 1; left; first = 0) {
		if (!first) {
			for (int at = 0; at < count; at++) {
				OSSL_ASYNC_FD descriptor = -1;
				size_t number = 1;
				if (ended[at] || !ASYNC_WAIT_CTX_get_all_fds(waits[at], &descriptor, &number) || number == 0)
					descriptor = -1;
				ready[at] = (struct pollfd){.fd = descriptor, .events = POLLIN};
			}
			poll(ready, (nfds_t)count, 100);
		}
		for (int at = 0; at < count; at++) {
			int answer;
			struct work *work = &works[at];
			if (ended[at] || (!first && ready[at].fd >= 0 && !ready[at].revents)) continue;
			switch (ASYNC_start_job(&jobs[at], waits[at], &answer, run, &work, sizeof(work))) {
			case ASYNC_PAUSE: break;
			case ASYNC_FINISH: ended[at] = 1; left--; break;
			default: failure = "a job does not start"; return;
			}
		}
	}
}

/* In a process of its own: says that it is ready, waits for the others, works. */
static struct result process(char **argv, int jobs, int ready, int go)
{
	static struct work works[MOST_JOBS];
	struct result result = {0};
	char byte = 0;
	int agrees = strcmp(argv[2], "sign") != 0;
	key = load(argv[1]);
	if (agrees) peer = other(argv[2]);
	if (!key || (agrees && !peer)) failure = "no such key";
	for (int at = 0; !failure && at < (jobs ? jobs : 1); at++)
		if (!prepare(&works[at])) failure = "the operation does not begin";
	/* Sessions, tables and caches are part of no figure. */
	if (!failure && !once(&works[0])) failure = "the first operation failed";
	if (write(ready, &byte, 1) != 1) exit(1);
	while (read(go, &byte, 1) > 0);
	double wall = now(CLOCK_MONOTONIC), cpu = now(CLOCK_PROCESS_CPUTIME_ID);
	struct work *all = works;
	end = wall + 1e9 * atof(argv[5]);
	if (!failure && jobs) run_jobs(works, jobs);
	else if (!failure) run(&all);
	result.cpu = now(CLOCK_PROCESS_CPUTIME_ID) - cpu;
	result.wall = now(CLOCK_MONOTONIC) - wall;
	result.operations = operations;
	if (failure) {
		char why[120] = "";
		ERR_error_string_n(ERR_peek_last_error(), why, sizeof(why));
		snprintf(result.error, sizeof(result.error), "%s: %s", failure, why);
	}
	return result;
}

int main(int argc, char **argv)
{
	int ready[2], go[2], results[2];
	char byte;
	if (argc != 6) {
		fprintf(stderr, "usage: openssl_loop KEY sign|GROUP PROCESSES JOBS SECONDS\n");
		return 2;
	}
	int processes = atoi(argv[3]), jobs = atoi(argv[4]);
	if (processes < 1 || processes > MOST_PROCESSES || jobs < 0 || jobs > MOST_JOBS) return 2;
	if (pipe(ready) || pipe(go) || pipe(results)) return 1;
	for (int at = 0; at < processes; at++) {
		if (fork() == 0) {
			close(go[1]);
			struct result result = process(argv, jobs, ready[1], go[0]);
			/* Less than a pipe takes at once. */
			return write(results[1], &result, sizeof(result)) != sizeof(result);
		}
	}
	close(ready[1]);
	close(results[1]);
	/* A process that dies says so by the end of the pipe. */
	for (int at = 0; at < processes; at++)
		if (read(ready[0], &byte, 1) != 1) break;
	close(go[1]);
	struct result all = {0}, one;
	int answers = 0;
	for (; read(results[0], &one, sizeof(one)) == sizeof(one); answers++) {
		all.operations += one.operations;
		all.cpu += one.cpu;
		if (one.wall > all.wall) all.wall = one.wall;
		if (one.error[0]) memcpy(all.error, one.error, sizeof(one.error));
	}
	while (wait(NULL) > 0);
	for (char *at = all.error; *at; at++)
		if (*at == '"' || *at == '\\' || (unsigned char)*at < 32) *at = ' ';
	if (!all.error[0] && answers < processes) strcpy(all.error, "a process died");
	if (all.error[0]) printf("{\"error\": \"%s\"}\n", all.error);
	else printf("{\"operations\": %ld, \"cpu_ns\": %.0f, \"wall_ns\": %.0f}\n", all.operations, all.cpu, all.wall);
	return all.error[0] != 0;
}
