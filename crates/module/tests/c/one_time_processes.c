/* SPDX-License-Identifier: Apache-2.0 */
/* Eight processes of two threads sign with one key of one-time keys, and are killed again and again. No one-time key signs twice, no
 * password comes out twice, and a thread that is killed loses one at most. Arguments: how many are killed, and the kind. */
#include "one_time.h"

enum { WORKERS = 8, THREADS = 2, ALL = 1 << 20, TREE = 12 + 24 * (1 + 26 + 10), PUBLIC = 48 };

static struct {
	atomic_ulong uses[ALL];
	atomic_ulong signatures, end;
	/* A login that is killed costs one of the tries at the PIN, as it should. */
	atomic_int is_in[WORKERS];
} *shared;

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key;

static CK_OBJECT_HANDLE find(CK_SESSION_HANDLE session, CK_OBJECT_CLASS class)
{
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof(class)};
	CK_OBJECT_HANDLE key;
	CK_ULONG found;
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, &key, 1, &found));
	CHECK(found == 1);
	OK(p11->C_FindObjectsFinal(session));
	return key;
}

static void *sign(void *unused)
{
	CK_BYTE message[16] = {0}, signature[8000];
	CK_SESSION_HANDLE own = open_session();
	CK_OBJECT_HANDLE key = find(own, signing);
	(void)unused;
	while (!shared->end) {
		CK_ULONG length = sizeof(signature);
		snprintf((char *)message, sizeof(message), "%d", getpid());
		OK(sign_once(own, key, message, sizeof(message), signature, &length));
		CK_ULONG number = number_in(signature, TREE + PUBLIC);
		CHECK(number < ALL);
		atomic_fetch_add(&shared->uses[number], 1);
		if (atomic_fetch_add(&shared->signatures, 1) % 50 || one_time.mechanism == CKM_HOTP) continue;
		key = find(own, CKO_PUBLIC_KEY);
		OK(p11->C_VerifyInit(own, &one_time, key));
		OK(p11->C_Verify(own, message, sizeof(message), signature, length));
		key = find(own, signing);
	}
	return NULL;
}

static pid_t start(int at)
{
	shared->is_in[at] = 0;
	pid_t child = fork();
	CHECK(child >= 0);
	if (child != 0) return child;
	pthread_t threads[THREADS];
	OK(p11->C_Initialize(NULL));
	session = user_session();
	shared->is_in[at] = 1;
	for (int i = 0; i < THREADS; i++) CHECK(pthread_create(&threads[i], NULL, sign, NULL) == 0);
	for (int i = 0; i < THREADS; i++) CHECK(pthread_join(threads[i], NULL) == 0);
	_exit(0);
}

static CK_ULONG make_key(void)
{
	CK_ULONG trees[] = {11, 11}, chains[] = {8, 8};
	CK_OBJECT_HANDLE keys[2];
	CK_RV rv = make_one_time(session, "key", 2, trees, chains, keys);
	public_key = keys[0];
	return rv;
}

static CK_ULONG left(void)
{
	CK_ULONG number;
	CK_BBOOL counts = one_time.mechanism == CKM_HOTP;
	CK_ATTRIBUTE query = {counts ? CKA_OTP_COUNTER : CKA_HSS_KEYS_REMAINING, &number, sizeof(number)};
	OK(p11->C_GetAttributeValue(session, find(session, signing), &query, 1));
	return counts ? ~big_endian((CK_BYTE *)&number, 8) : number;
}

int main(int argc, char **argv)
{
	CHECK(argc == 3);
	choose(argv[2]);
	CK_ULONG all = one_time.mechanism == CKM_HOTP ? (CK_ULONG)-1 : ALL;
	int kills = atoi(argv[1]);
	unsigned chance = (unsigned)time(NULL);
	pid_t workers[WORKERS];
	CK_ULONG twice = 0, used = 0;
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	session = begin_as_user();
	OK(make_key());
	CHECK(left() == all);
	OK(p11->C_Finalize(NULL));
	for (int i = 0; i < WORKERS; i++) workers[i] = start(i);
	for (int killed = 0; killed < kills; killed++) {
		int at = rand_r(&chance) % WORKERS;
		/* A login takes longer than many signatures. */
		CK_ULONG before = shared->signatures;
		for (int i = 0; i < 60000 && (!shared->is_in[at] || shared->signatures < before + 5); i++) usleep(1000);
		usleep(rand_r(&chance) % 100000);
		kill(workers[at], SIGKILL);
		CHECK(ended(workers[at]) == SIGKILL);
		workers[at] = start(at);
	}
	shared->end = 1;
	for (int i = 0; i < WORKERS; i++) CHECK(ended(workers[i]) == 0);
	for (int i = 0; i < ALL; i++) {
		twice += shared->uses[i] > 1;
		used += shared->uses[i] > 0;
	}
	OK(p11->C_Initialize(NULL));
	session = user_session();
	CK_ULONG lost = all - left() - used;
	printf("%lu signatures, %d killed: %lu used twice, %lu lost\n", used, kills, twice, lost);
	CHECK(twice == 0 && used > 0 && lost <= (CK_ULONG)kills * THREADS);
	return 0;
}
