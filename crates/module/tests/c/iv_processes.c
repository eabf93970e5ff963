/* SPDX-License-Identifier: Apache-2.0 */
/* Eight processes seal messages under one key of the token, with counted IVs. Some are killed and begin again, some fork
 * within an operation. No IV comes twice, and who is killed loses no more numbers than it has used, but
 * 1,024.
 * Arguments: how many messages each seals, how many are killed. */
#include "common.h"

#define WORKERS 8
/* Messages beyond those that are asked for, and of them what forks and what is on its way take. */
#define MORE 4000000
#define SPARE 10000
#define BLOCK 1024
/* Of the fixed parts each has a counter, the second one with a base. */
#define BASE 0x5a5a5a5a5a5a5a5aULL

static struct {
	atomic_ulong used, started;
	/* Until they are over, nobody ends: a fast machine would have done everything before. */
	atomic_int kills_left;
	_Atomic pid_t at_work[WORKERS];
	atomic_ulong left[WORKERS];
	CK_ULONG room;
	uint64_t ivs[];
} *shared;

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE key;
static CK_BYTE iv[12], tag[16], text[32], sealed[32];
static CK_GCM_MESSAGE_PARAMS gcm = {iv, sizeof(iv), 32, CKG_GENERATE_COUNTER, tag, 128};

static void begin(void)
{
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof(class)};
	CK_ULONG found;
	OK(p11->C_Initialize(NULL));
	OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session));
	/* Logins come one after another: on a busy machine the last of eight waits for longer than a login may. */
	CK_RV rv = CKR_DEVICE_ERROR;
	for (int i = 0; i < 10 && rv == CKR_DEVICE_ERROR; i++) rv = p11->C_Login(session, CKU_USER, user_pin, 4);
	OK(rv);
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, &key, 1, &found));
	CHECK(found == 1);
	OK(p11->C_FindObjectsFinal(session));
	OK(p11->C_MessageEncryptInit(session, &mechanism, key));
	atomic_fetch_add(&shared->started, 1);
}

static uint64_t base_of(int fixed)
{
	uint64_t base = fixed ? BASE : 0;
	memset(iv, fixed, sizeof(iv));
	if (fixed) memcpy(iv + 4, &base, sizeof(base));
	gcm.ivGenerator = fixed ? CKG_GENERATE_COUNTER_XOR : CKG_GENERATE_COUNTER;
	return base;
}

static void seal(int fixed)
{
	uint64_t number = 0, base = base_of(fixed);
	CK_ULONG length = sizeof(sealed);
	OK(p11->C_EncryptMessage(session, &gcm, sizeof(gcm), NULL, 0, text, sizeof(text), sealed, &length));
	for (int i = 4; i < 12; i++) number = number << 8 | iv[i];
	CK_ULONG at = atomic_fetch_add(&shared->used, 1);
	CHECK(at < shared->room && iv[0] == fixed && iv[3] == fixed);
	/* The numbers of the two stay below 2^62; a place that a killed process did not fill is 0. */
	shared->ivs[at] = (number ^ base) * 2 + (CK_ULONG)fixed + 1;
}

/* Within an operation: the child has no session, and takes numbers of its own. */
static void fork_once(void)
{
	CK_ULONG length = sizeof(sealed);
	base_of(0);
	OK(p11->C_EncryptMessageBegin(session, &gcm, sizeof(gcm), NULL, 0));
	pid_t child = fork();
	if (child == 0) {
		EXPECT(p11->C_EncryptMessageNext(session, &gcm, sizeof(gcm), text, 1, sealed, &length, 0),
		       CKR_CRYPTOKI_NOT_INITIALIZED);
		begin();
		for (int i = 0; i < 50; i++) seal(i & 1);
		_exit(0);
	}
	int status;
	CHECK(child > 0);
	OK(p11->C_EncryptMessageNext(session, &gcm, sizeof(gcm), text, 1, sealed, &length, CKF_END_OF_MESSAGE));
	for (int i = 0; i < 20; i++) seal(i & 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void work(int number)
{
	begin();
	shared->at_work[number] = getpid();
	CK_ULONG forks_at = shared->left[number] / 2;
	while (shared->left[number] > 0 || shared->kills_left > 0) {
		if (shared->left[number] == 0 && shared->used + SPARE > shared->room) {
			usleep(1000);
			continue;
		}
		CK_ULONG left = shared->left[number] > 0 ? atomic_fetch_sub(&shared->left[number], 1) : 0;
		seal((int)(left & 1));
		if (left > 0 && left == forks_at) {
			shared->at_work[number] = 0;
			fork_once();
			shared->at_work[number] = getpid();
		}
	}
	shared->at_work[number] = 0;
	if (number & 1) OK(p11->C_Finalize(NULL));
	_exit(0);
}

static pid_t start(int number)
{
	pid_t child = fork();
	if (child == 0) work(number);
	CHECK(child > 0);
	return child;
}

/* Kills one that is at work: what it is in the middle of, a commit perhaps, is chance. */
static int kill_one(pid_t *workers, unsigned *chance)
{
	int number = rand_r(chance) % WORKERS, status;
	if (workers[number] == 0 || shared->at_work[number] != workers[number]) {
		usleep(500);
		return 0;
	}
	usleep(rand_r(chance) % 50000);
	if (shared->at_work[number] != workers[number]) return 0;
	kill(workers[number], SIGKILL);
	CHECK(waitpid(workers[number], &status, 0) == workers[number]);
	int killed = WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL;
	CHECK(killed || status == 0);
	shared->at_work[number] = 0;
	workers[number] = killed ? start(number) : 0;
	return killed;
}

/* Whether any of them may still have something to do. */
static int at_work(pid_t *workers)
{
	for (int i = 0; i < WORKERS; i++)
		if (workers[i] != 0) return 1;
	return 0;
}

static int order(const void *a, const void *b)
{
	uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
	return (one > other) - (one < other);
}

static void judge(int killed)
{
	CK_ULONG count = shared->used, twice = 0, seen[2] = {0, 0};
	uint64_t last[2] = {0, 0};
	qsort(shared->ivs, count, sizeof(uint64_t), order);
	for (CK_ULONG i = 0; i < count; i++) {
		if (shared->ivs[i] == 0) continue;
		twice += i > 0 && shared->ivs[i] == shared->ivs[i - 1];
		int fixed = (shared->ivs[i] - 1) & 1;
		last[fixed] = (shared->ivs[i] - 1) / 2;
		seen[fixed]++;
	}
	printf("%lu messages, %lu processes, %d killed: %lu repeated, %lu and %lu lost\n", count,
	       (CK_ULONG)shared->started, killed, twice, last[0] + 1 - seen[0], last[1] + 1 - seen[1]);
	CHECK(twice == 0 && killed > 0);
	for (int fixed = 0; fixed < 2; fixed++)
		CHECK(last[fixed] + 1 - seen[fixed] <= shared->started * BLOCK + seen[fixed]);
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	CK_ULONG each = strtoul(argv[1], NULL, 10), room = WORKERS * (each + 200) + MORE;
	int killed = 0, to_kill = atoi(argv[2]), status;
	unsigned chance = (unsigned)time(NULL);
	pid_t workers[WORKERS];
	shared = mmap(NULL, sizeof(*shared) + room * sizeof(uint64_t), PROT_READ | PROT_WRITE,
		      MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	shared->room = room;
	session = begin_as_user();
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG bytes = 16;
	CK_ATTRIBUTE template[] = {{CKA_TOKEN, &yes, 1}, {CKA_VALUE_LEN, &bytes, sizeof(bytes)}};
	OK(p11->C_GenerateKey(session, &generate, template, 2, &key));
	OK(p11->C_Finalize(NULL));
	for (int i = 0; i < WORKERS; i++) shared->left[i] = each;
	shared->kills_left = to_kill;
	for (int i = 0; i < WORKERS; i++) workers[i] = start(i);
	while (killed < to_kill && at_work(workers)) killed += kill_one(workers, &chance);
	shared->kills_left = 0;
	for (int i = 0; i < WORKERS; i++) {
		if (workers[i] == 0) continue;
		CHECK(waitpid(workers[i], &status, 0) == workers[i]);
		CHECK(status == 0);
	}
	judge(killed);
	return 0;
}
