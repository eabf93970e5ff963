/* SPDX-License-Identifier: Apache-2.0 */
/* A load for a PKCS#11 module, as another project's program would be: it loads the module, makes keys, and lets threads do one
 * operation each with a session and messages of its own. After the clock has stopped, OpenSSL checks every result (of
 * ML-DSA, which it has since 3.5, the module where it is older).
 *
 *   cc -O2 -I include main.c work.c openssl.c -o lanes_load -lpthread -ldl
 *   echo 'blocking 16 1 1 200 100000' | ./lanes_load ./libmetaslot.so rsa2048-sign
 *
 * A line of standard input is a window: blocking or asynchronous, threads, keys, operations of each thread in flight,
 * milliseconds, operations at most. Each line is answered by a line of JSON. `./lanes_load --openssl` times OpenSSL and judges
 * signatures instead; `./lanes_load --list` names the operations. `metaslot lab lanes` runs it. */
#include "load.h"
#include <pthread.h>
#include <sched.h>
#include <unistd.h>

#define MOST_THREADS 256
#define NANOSECONDS 1e9

#define MOST_DEPTH 1024
/* In the place of a key's number: no result. */
#define NO_KEY 255

struct thread {
	pthread_t thread;
	struct slot *slots;
	uint64_t next, end;	/* the share of the records that it has taken */
	uint64_t done, pending;	/* those whose call returned CKR_PENDING */
	uint64_t wrong;		/* found when the clock had stopped */
};

/* A window, as it was asked for. */
static struct {
	int asynchronous, threads, keys, depth;
	double seconds;
	uint64_t most, number;
	pthread_barrier_t over;
	double deadline;
	atomic_int ready, go, stop, running;
	double wall, cpu;	/* at the start, then what it took */
} window;

/* What is remembered of each operation of a window. Threads take shares, so that none that is slow leaves its part unused. */
static struct {
	atomic_ullong taken;
	uint64_t share;
	uint32_t *latencies;
	uint8_t *key_of;
	CK_BYTE *results;
} record;

static struct thread threads[MOST_THREADS];

/* `what` may be a whole call, of which the name is enough. */
void die(const char *what, unsigned long code)
{
	if (strncmp(what, "p11->", 5) == 0) what += 5;
	int length = (int)strcspn(what, "(");
	if (code)
		printf("{\"error\": \"%.*s: 0x%lx\"}\n", length, what, code);
	else
		printf("{\"error\": \"%.*s\"}\n", length, what);
	fflush(stdout);
	_exit(1);
}

double now(void)
{
	struct timespec at;
	clock_gettime(CLOCK_MONOTONIC, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

static double process_time(void)
{
	struct timespec at;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &at);
	return (double)at.tv_sec + 1e-9 * (double)at.tv_nsec;
}

/* Notes a result; `rv` is what the call answered. */
static void note(struct thread *self, struct slot *slot, CK_RV rv, double at)
{
	if (rv != CKR_OK && !(operation->kind == VERIFY && rv == CKR_SIGNATURE_INVALID))
		die(operation->name, rv);
	if (operation->kind == SIGN && slot->length != kept) die("a signature of another length", 0);
	record.latencies[slot->at] = (uint32_t)(NANOSECONDS * (at - slot->since));
	record.key_of[slot->at] = (uint8_t)(slot->key - keys);
	keep(slot, rv, record.results + slot->at * kept);
	self->done++;
	if (at >= window.deadline) window.stop = 1;
}

/* Takes the next record for a slot; false when there is none or the time is over. */
static int next(struct thread *self, struct slot *slot)
{
	if (window.stop) return 0;
	if (self->next == self->end) {
		self->next = atomic_fetch_add(&record.taken, record.share);
		self->end = self->next + record.share;
	}
	if (self->next >= window.most) {
		self->end = self->next;
		return 0;
	}
	slot->at = self->next++;
	slot->since = now();
	return 1;
}

static void block(struct thread *self)
{
	struct slot *slot = self->slots;
	while (next(self, slot)) {
		CK_RV rv = begin(slot, window.number);
		note(self, slot, rv, now());
	}
}

/* Keeps all slots busy and asks one after the other for its result. One that is not there yet, because another thread is at it, is asked
 * again when its turn comes. */
static void go_round(struct thread *self)
{
	char busy[MOST_DEPTH] = {0};
	int flying = 0, over = 0;
	for (int at = 0; flying || !over; at = (at + 1) % window.depth) {
		struct slot *slot = &self->slots[at];
		CK_RV rv = busy[at] ? complete(slot) : CKR_OK;
		if (rv == CKR_PENDING) continue;
		if (busy[at]) note(self, slot, rv, now());
		flying -= busy[at];
		busy[at] = 0;
		over = over || !next(self, slot);
		if (over) continue;
		rv = begin(slot, window.number);
		busy[at] = rv == CKR_PENDING;
		flying += busy[at];
		self->pending += (uint64_t)busy[at];
		if (!busy[at]) note(self, slot, rv, now());
	}
}

/* Threads are awake when the window begins, and those that are ready early do not wake anybody: neither belongs to the
 * operations. */
static void *run(void *argument)
{
	struct thread *self = argument;
	window.ready++;
	while (!window.go) sched_yield();
	if (window.asynchronous)
		go_round(self);
	else
		block(self);
	if (--window.running == 0) {
		window.cpu = process_time() - window.cpu;
		window.wall = now() - window.wall;
	}
	pthread_barrier_wait(&window.over);
	return NULL;
}

/* A share of the checks for each processor. */
static int checkers;

static void *check(void *argument)
{
	struct thread *self = argument;
	CK_BYTE *scratch = malloc(2 * operation->message + 64);
	int mine = (int)(self - threads);
	memset(scratch, 0x5a, operation->message);
	self->wrong = 0;
	for (uint64_t at = (uint64_t)mine; at < window.most; at += (uint64_t)checkers)
		if (record.key_of[at] != NO_KEY &&
		    !is_right(&keys[record.key_of[at]], scratch, window.number, at, record.results + at * kept))
			self->wrong++;
	free(scratch);
	return NULL;
}

static void check_all(void)
{
	checkers = (int)sysconf(_SC_NPROCESSORS_ONLN);
	if (checkers < 1 || checkers > 64) checkers = 1;
	uint64_t wrong = 0;
	for (int at = 0; at < checkers; at++)
		if (pthread_create(&threads[at].thread, NULL, check, &threads[at])) die("threads", 0);
	for (int at = 0; at < checkers; at++) {
		pthread_join(threads[at].thread, NULL);
		wrong += threads[at].wrong;
	}
	for (int at = 0; at < window.threads; at++)
		for (int slot = 0; slot < window.depth; slot++)
			wrong += threads[at].slots[slot].since > 0 && !whole_is_right(&threads[at].slots[slot]);
	if (wrong) die("wrong result: OpenSSL has another one", 0);
}

static void *room(size_t size)
{
	void *room = malloc(size);
	if (room == NULL) die("memory", 0);
	/* Touched now, so that the window holds no page faults. */
	memset(room, 1, size);
	return room;
}

static void prepare(struct thread *self, int number)
{
	*self = (struct thread){0};
	self->slots = calloc((size_t)window.depth, sizeof(struct slot));
	if (self->slots == NULL) die("memory", 0);
	for (int at = 0; at < window.depth; at++)
		open_slot(&self->slots[at], number + at, &keys[(number + at) % window.keys],
			  window.asynchronous);
}

static void prepare_record(void)
{
	record.taken = 0;
	record.share = window.most / (uint64_t)(8 * window.threads);
	if (record.share < 1) record.share = 1;
	if (record.share > 64) record.share = 64;
	record.latencies = room(window.most * sizeof(uint32_t));
	record.key_of = room(window.most);
	record.results = room(window.most * kept);
	memset(record.key_of, NO_KEY, window.most);
}

static void clear(void)
{
	for (int at = 0; at < window.threads; at++) {
		for (int slot = 0; slot < window.depth; slot++) close_slot(&threads[at].slots[slot]);
		free(threads[at].slots);
	}
	free(record.latencies);
	free(record.key_of);
	free(record.results);
}

static int compare(const void *a, const void *b)
{
	uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
	return (x > y) - (x < y);
}

static void report(void)
{
	uint64_t done = 0, pending = 0, used = 0;
	for (int at = 0; at < window.threads; at++) {
		done += threads[at].done;
		pending += threads[at].pending;
	}
	for (uint64_t at = 0; at < window.most; at++)
		if (record.key_of[at] != NO_KEY) record.latencies[used++] = record.latencies[at];
	if (used != done || done == 0) die("a window without all of its results", 0);
	qsort(record.latencies, done, sizeof(record.latencies[0]), compare);
	printf("{\"operations\": %lu, \"pending\": %lu, \"seconds\": %.9f, \"cpu_seconds\": %.9f, "
	       "\"p50_ns\": %u, \"p99_ns\": %u}\n",
	       (unsigned long)done, (unsigned long)pending, window.wall, window.cpu,
	       record.latencies[done / 2], record.latencies[(done - 1) * 99 / 100]);
}

static void measure(void)
{
	window.stop = 0;
	window.number++;
	make_keys(window.keys);
	window.ready = window.go = 0;
	window.running = window.threads;
	if (pthread_barrier_init(&window.over, NULL, (unsigned)window.threads)) die("barriers", 0);
	for (int at = 0; at < window.threads; at++) prepare(&threads[at], at);
	prepare_record();
	for (int at = 0; at < window.threads; at++)
		if (pthread_create(&threads[at].thread, NULL, run, &threads[at])) die("threads", 0);
	while (window.ready < window.threads) sched_yield();
	window.wall = now();
	window.cpu = process_time();
	window.deadline = window.wall + window.seconds;
	window.go = 1;
	for (int at = 0; at < window.threads; at++) pthread_join(threads[at].thread, NULL);
	check_all();
	report();
	clear();
	pthread_barrier_destroy(&window.over);
}

/* One operation, to know how long a result is and how long its check takes. */
static double first(void)
{
	struct slot slot = {0};
	CK_BYTE result[MOST_KEPT], *scratch = room(2 * operation->message + 64);
	open_slot(&slot, 0, &keys[0], 0);
	CK_RV rv = begin(&slot, 0);
	if (rv != CKR_OK) die(operation->name, rv);
	if (operation->kind == VERIFY)
		kept = 1;
	else if (operation->kind == ENCRYPT || operation->kind == DECRYPT)
		kept = TAIL;
	else
		kept = slot.length;
	memset(scratch, 0x5a, operation->message);
	keep(&slot, rv, result);
	double start = now();
	int times = 0, good = 1;
	while (good && now() - start < 0.01) {
		good = is_right(&keys[0], scratch, 0, 0, result);
		times++;
	}
	double each = NANOSECONDS * (now() - start) / times;
	if (!good || !whole_is_right(&slot)) die("wrong result: OpenSSL has another one", 0);
	close_slot(&slot);
	free(scratch);
	return each;
}

static void serve(const char *module, const char *name)
{
	char line[200], mode[20];
	double milliseconds;
	load_openssl();
	operation = operation_named(name);
	load_module(module);
	const char *why = not_served();
	if (why) {
		printf("{\"served\": false, \"why\": \"%s\"}\n", why);
		return;
	}
	if (operation->kind == DERIVE) make_peers();
	make_keys(1);
	printf("{\"served\": true, \"check_ns\": %.0f, \"openssl\": \"%s\"}\n", first(), openssl_version());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int read = sscanf(line, "%19s %d %d %d %lf %lu", mode, &window.threads, &window.keys,
				  &window.depth, &milliseconds, &window.most);
		window.asynchronous = strcmp(mode, "asynchronous") == 0;
		window.seconds = milliseconds / 1e3;
		if (read != 6 || window.threads < 1 || window.threads > MOST_THREADS || window.keys < 1 ||
		    window.keys > MOST_KEYS || window.depth < 1 || window.depth > MOST_DEPTH ||
		    window.most < 1)
			die("what kind of window is that?", 0);
		measure();
		fflush(stdout);
	}
	OK(p11->C_Finalize(NULL));
}

/* Bytes from hexadecimal digits; gives their number. */
static CK_ULONG bytes(const char *digits, CK_BYTE *out, CK_ULONG most)
{
	CK_ULONG length = 0;
	unsigned byte;
	while (length < most && sscanf(digits + 2 * length, "%2x", &byte) == 1) out[length++] = (CK_BYTE)byte;
	return length;
}

static void judge(void)
{
	char line[1600], what[8], curve[16], rest[3][500];
	load_openssl();
	printf("{\"openssl\": \"%s\"}\n", openssl_version());
	fflush(stdout);
	while (fgets(line, sizeof(line), stdin)) {
		int read = sscanf(line, "%7s %15s %499s %499s %499s", what, curve, rest[0], rest[1], rest[2]);
		if (read == 4 && strcmp(what, "time") == 0) {
			printf("{\"ns\": %.1f}\n", time_openssl(curve, rest[0], atof(rest[1]) / 1e6));
		} else if (read == 5 && strcmp(what, "claim") == 0) {
			CK_BYTE point[250], digest[250], signature[250];
			void *key = public_key_on(curve, point, bytes(rest[0], point, sizeof(point)));
			CK_ULONG length = bytes(rest[1], digest, sizeof(digest));
			int good = ecdsa_verifies(key, digest, length, signature,
						  bytes(rest[2], signature, sizeof(signature)));
			printf("{\"good\": %s}\n", good ? "true" : "false");
		} else {
			die("what should OpenSSL do?", 0);
		}
		fflush(stdout);
	}
}

int main(int argc, char **argv)
{
	if (argc == 2 && strcmp(argv[1], "--list") == 0)
		list_operations();
	else if (argc == 2 && strcmp(argv[1], "--openssl") == 0)
		judge();
	else if (argc == 3)
		serve(argv[1], argv[2]);
	else
		die("usage: lanes_load MODULE OPERATION | --openssl | --list", 0);
	return 0;
}
