/* SPDX-License-Identifier: Apache-2.0 */
/* Eight processes that each fork another, all at work; some end, some kill themselves between two calls,
 * some are killed in the middle of one. Each counts what it did where it is not lost, and prints it:
 *
 *   process PID exact|killed THREADS
 *   call PID FUNCTION BEGUN RETURNED FAILED
 *   operation PID sha256|hmac SIZECLASS OPERATIONS BYTES ERRORS
 */
#include "common.h"

#include <sys/prctl.h>

enum { DIGEST_INIT, DIGEST, DIGEST_UPDATE, DIGEST_FINAL, SIGN_INIT, SIGN, VERIFY_INIT, VERIFY, FUNCTIONS };
static const char *const names[FUNCTIONS] = {
	"C_DigestInit", "C_Digest", "C_DigestUpdate", "C_DigestFinal",
	"C_SignInit", "C_Sign", "C_VerifyInit", "C_Verify",
};
enum { SHA256, HMAC, MECHANISMS };
enum { SIZES = 5, PARENTS = 8, PROCESSES = 2 * PARENTS, THREADS = 40, LARGEST = 300000 };
static const size_t limits[SIZES - 1] = {64, 1024, 16384, 262144};

/* How a process ends. */
enum end { FINALIZES, EXITS, KILLS_ITSELF, IS_KILLED, ENDS };

struct done {
	unsigned long begun[FUNCTIONS], returned[FUNCTIONS], failed[FUNCTIONS];
	unsigned long operations[MECHANISMS][SIZES], bytes[MECHANISMS][SIZES], errors[MECHANISMS][SIZES];
};
struct process {
	pid_t pid;
	enum end end;
	int threads;
	struct done done[THREADS];
};
/* Shared by all; nothing in it is lost with the process that wrote it. */
static struct shared {
	_Atomic int ready;
	struct process processes[PROCESSES];
} *shared;

static struct process *self;
static CK_BYTE data[LARGEST];

struct worker {
	struct done *done;
	CK_SESSION_HANDLE session;
	CK_OBJECT_HANDLE key;
	unsigned random;
	unsigned rounds;
};

static unsigned next(struct worker *w)
{
	w->random = w->random * 1664525 + 1013904223;
	return w->random >> 8;
}

#define CALL(w, function, call) \
	({ \
		(w)->done->begun[function]++; \
		CK_RV rv_ = (call); \
		(w)->done->returned[function]++; \
		if (rv_ != CKR_OK) (w)->done->failed[function]++; \
		rv_; \
	})

static void finished(struct worker *w, int mechanism, size_t bytes, int ok)
{
	int size = 0;
	while (size < SIZES - 1 && bytes > limits[size]) size++;
	w->done->operations[mechanism][size]++;
	w->done->bytes[mechanism][size] += bytes;
	if (!ok) w->done->errors[mechanism][size]++;
}

static CK_MECHANISM sha256_mechanism = {CKM_SHA256, NULL, 0}, hmac = {CKM_SHA256_HMAC, NULL, 0};

/* At once, in pieces, into too small a buffer first, or without a beginning. */
static void digest(struct worker *w, size_t length)
{
	CK_BYTE out[32];
	CK_ULONG size = 31;
	if (next(w) % 8 == 0) {
		EXPECT(CALL(w, DIGEST, p11->C_Digest(w->session, data, length, out, &size)),
		       CKR_OPERATION_NOT_INITIALIZED);
		return;
	}
	OK(CALL(w, DIGEST_INIT, p11->C_DigestInit(w->session, &sha256_mechanism)));
	if (next(w) % 2 == 0) {
		EXPECT(CALL(w, DIGEST, p11->C_Digest(w->session, data, length, out, &size)),
		       CKR_BUFFER_TOO_SMALL);
		OK(CALL(w, DIGEST, p11->C_Digest(w->session, data, length, NULL, &size)));
		OK(CALL(w, DIGEST, p11->C_Digest(w->session, data, length, out, &size)));
	} else {
		for (size_t at = 0, piece; at < length; at += piece) {
			piece = 1 + next(w) % length;
			if (piece > length - at) piece = length - at;
			OK(CALL(w, DIGEST_UPDATE, p11->C_DigestUpdate(w->session, data + at, piece)));
		}
		size = 32;
		OK(CALL(w, DIGEST_FINAL, p11->C_DigestFinal(w->session, out, &size)));
	}
	finished(w, SHA256, length, 1);
}

/* A MAC, then its verification, which fails for every third. */
static void mac(struct worker *w, size_t length)
{
	CK_BYTE out[32];
	CK_ULONG size = sizeof out;
	OK(CALL(w, SIGN_INIT, p11->C_SignInit(w->session, &hmac, w->key)));
	OK(CALL(w, SIGN, p11->C_Sign(w->session, data, length, out, &size)));
	finished(w, HMAC, length, 1);
	int wrong = next(w) % 3 == 0;
	out[0] ^= wrong;
	OK(CALL(w, VERIFY_INIT, p11->C_VerifyInit(w->session, &hmac, w->key)));
	EXPECT(CALL(w, VERIFY, p11->C_Verify(w->session, data, length, out, 32)),
	       wrong ? CKR_SIGNATURE_INVALID : CKR_OK);
	finished(w, HMAC, length, !wrong);
}

static void *work(void *argument)
{
	static const size_t lengths[] = {1, 64, 65, 1000, 20000, LARGEST};
	struct worker *w = argument;
	for (unsigned round = 0; round < w->rounds || self->end == IS_KILLED; round++) {
		size_t length = lengths[next(w) % (round % 16 == 0 ? 6 : 4)];
		if (next(w) % 2) {
			digest(w, length);
		} else {
			mac(w, length);
		}
	}
	if (self->end == KILLS_ITSELF) raise(SIGKILL);
	return NULL;
}

static void process(struct process *process)
{
	static struct worker workers[THREADS];
	pthread_t threads[THREADS];
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_GENERIC_SECRET;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
		{CKA_VALUE, data, 32},		   {CKA_SIGN, &yes, 1},
		{CKA_VERIFY, &yes, 1},
	};
	self = process;
	OK(p11->C_Initialize(NULL));
	for (int i = 0; i < self->threads; i++) {
		unsigned seed = 7919u * (unsigned)(process - shared->processes) + (unsigned)i;
		workers[i] = (struct worker){&self->done[i], open_session(), 0, seed, 40 + seed % 41};
		OK(p11->C_CreateObject(workers[i].session, template, 5, &workers[i].key));
	}
	/* No process begins to work, and so to die, before all have their pages: the next that makes a page
	 * removes those of the dead. */
	shared->ready++;
	while (shared->ready < PROCESSES) pause_ms(1);
	for (int i = 0; i < self->threads; i++) CHECK(pthread_create(&threads[i], NULL, work, &workers[i]) == 0);
	for (int i = 0; i < self->threads; i++) CHECK(pthread_join(threads[i], NULL) == 0);
	if (self->end == FINALIZES) OK(p11->C_Finalize(NULL));
	_exit(0);
}

/* A process and the one that it forks while it is initialised itself. */
static void parent(int number)
{
	load();
	OK(p11->C_Initialize(NULL));
	check_works(open_session());
	pid_t child = fork();
	CHECK(child >= 0);
	struct process *own = &shared->processes[2 * number + (child == 0)];
	own->pid = getpid();
	if (child != 0) {
		/* It keeps its page and its counts, with the digest from before the fork. */
		OK(p11->C_Finalize(NULL));
		self = own;
		struct worker before = {&own->done[0], 0, 0, 0, 0};
		for (int function = DIGEST_INIT; function <= DIGEST; function++) CALL(&before, function, CKR_OK);
		finished(&before, SHA256, 3, 1);
	}
	process(own);
}

static void print(const struct process *process)
{
	printf("process %d %s %d\n", process->pid, process->end == IS_KILLED ? "killed" : "exact", process->threads);
	struct done all = {0};
	for (size_t word = 0; word < sizeof all / sizeof(long); word++)
		for (int thread = 0; thread < process->threads; thread++)
			((unsigned long *)&all)[word] += ((const unsigned long *)&process->done[thread])[word];
	for (int at = 0; at < FUNCTIONS; at++)
		printf("call %d %s %lu %lu %lu\n", process->pid, names[at], all.begun[at], all.returned[at], all.failed[at]);
	for (int at = 0; at < MECHANISMS; at++)
		for (int size = 0; size < SIZES; size++)
			printf("operation %d %s %d %lu %lu %lu\n", process->pid, at == SHA256 ? "sha256" : "hmac",
			       size, all.operations[at][size], all.bytes[at][size], all.errors[at][size]);
}

int main(void)
{
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	CHECK(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	pid_t maker = fork();
	if (maker == 0) {
		load();
		OK(p11->C_Initialize(NULL));
		make_token();
		OK(p11->C_Finalize(NULL));
		_exit(0);
	}
	CHECK(ended(maker) == 0);
	for (int i = 0; i < PROCESSES; i++) {
		enum end end = (enum end)((i + i / 4) % ENDS);
		/* More threads than a page has shards of their own, in one of them; one where it must know that
		 * no other thread is in a call when it dies. */
		int threads = end == KILLS_ITSELF ? 1 : i == 0 ? THREADS : 3;
		shared->processes[i].end = end;
		shared->processes[i].threads = threads;
	}
	for (int i = 0; i < PARENTS; i++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) parent(i);
	}
	for (int i = 0; i < PROCESSES; i++) {
		struct process *process = &shared->processes[i];
		if (process->end != IS_KILLED) continue;
		volatile unsigned long *signed_already = &process->done[0].returned[SIGN];
		while (*signed_already < 20) pause_ms(1);
		CHECK(kill(process->pid, SIGKILL) == 0);
	}
	int status;
	while (wait(&status) > 0) CHECK(status == 0 || status == SIGKILL);
	for (int i = 0; i < PROCESSES; i++) print(&shared->processes[i]);
	return 0;
}
