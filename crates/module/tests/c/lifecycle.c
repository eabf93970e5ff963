// SPDX-License-Identifier: Apache-2.0
/* Ends of processes, threads and libraries, in every order. Each variant is one process; the harness
 * runs each many times. A variant passes when the process ends with 0, in time. */
#include "common.h"

static CK_SESSION_HANDLE session;
static volatile int busy = 1;
static volatile int running;

/* Works until it is told otherwise; every answer is fine, a crash is not. */
static void *work(void *unused)
{
	CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
	CK_BYTE data[512] = {0}, out[32];
	(void)unused;
	__sync_fetch_and_add(&running, 1);
	while (busy) {
		CK_SESSION_HANDLE own;
		if (p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &own) != CKR_OK) continue;
		for (int i = 0; i < 20; i++) {
			CK_ULONG length = sizeof out;
			if (p11->C_DigestInit(own, &mechanism) != CKR_OK) break;
			p11->C_Digest(own, data, sizeof data, out, &length);
		}
		p11->C_CloseSession(own);
	}
	return NULL;
}

static void start(pthread_t *threads, int count)
{
	running = 0;
	for (int i = 0; i < count; i++) CHECK(pthread_create(&threads[i], NULL, work, NULL) == 0);
	while (running < count) sched_yield();
	pause_ms(1);
}

static void call_late(void)
{
	check_works(session);
	p11->C_CloseSession(session);
}

static void finalize_late(void)
{
	check_works(session);
	OK(p11->C_Finalize(NULL));
}

static void *exit_in_thread(void *unused)
{
	(void)unused;
	exit(0);
}

static void *call_at_thread_end(void *unused)
{
	(void)unused;
	check_works(open_session());
	return NULL;
}

/* Unless an earlier run made it. */
static void make_token_once(void)
{
	CK_TOKEN_INFO info;
	OK(p11->C_GetTokenInfo(0, &info));
	if (info.flags & CKF_USER_PIN_INITIALIZED) return;
	OK(p11->C_CloseSession(session));
	make_token();
	session = open_session();
}

static void *write_keys(void *unused)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 16;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length},
				   {CKA_TOKEN, &yes, 1},
				   {CKA_PRIVATE, &yes, 1}};
	(void)unused;
	for (;;) {
		CK_SESSION_HANDLE own;
		CK_OBJECT_HANDLE key;
		pthread_testcancel();
		own = open_session();
		OK(p11->C_GenerateKey(own, &generate, template, 3, &key));
		OK(p11->C_DestroyObject(own, key));
		OK(p11->C_CloseSession(own));
	}
}

/* A thread's first call finds it a place in the page of counters. In a store that others share, every use of a key is
 * a look at a file, and where there is an audit log a key that is made is a line. */
static void *use_key_cancelled(void *done)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0}, encrypt = {CKM_AES_ECB, NULL, 0};
	CK_ULONG length = 16;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length},
				   {CKA_TOKEN, &yes, 1},
				   {CKA_ENCRYPT, &yes, 1}};
	CK_BYTE data[16] = {0}, out[16];
	CK_SESSION_HANDLE own;
	CK_OBJECT_HANDLE key;
	pthread_cancel(pthread_self());
	own = open_session();
	OK(p11->C_GenerateKey(own, &generate, template, 3, &key));
	for (int i = 0; i < 3; i++) {
		length = sizeof out;
		OK(p11->C_EncryptInit(own, &encrypt, key));
		OK(p11->C_Encrypt(own, data, sizeof data, out, &length));
	}
	OK(p11->C_DestroyObject(own, key));
	*(int *)done = 1;
	pthread_testcancel();
	FAIL("the thread was not cancelled");
}

static void *wait_for_event(void *unused)
{
	CK_SLOT_ID slot;
	(void)unused;
	EXPECT(p11->C_WaitForSlotEvent(0, &slot, NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	return NULL;
}

static pthread_key_t key;

/* Runs when a thread ends, also after the module's own handler ran. */
static void thread_destructor(void *again)
{
	check_works(open_session());
	if (again != NULL && *(int *)again > 0) {
		--*(int *)again;
		pthread_setspecific(key, again);
	}
}

static void other_library(const char *name)
{
	char path[4096];
	void *other;
	void (*use)(CK_FUNCTION_LIST_3_2 *, CK_SESSION_HANDLE);
	snprintf(path, sizeof path, "%s/%s", getenv("BOUNDARY_LIBRARIES"), name);
	other = dlopen(path, RTLD_NOW);
	if (other == NULL) FAIL("%s", dlerror());
	*(void **)&use = dlsym(other, "use_in_destructor");
	CHECK(use != NULL);
	use(p11, session);
}

static void fork_under_threads(void)
{
	pthread_t threads[4];
	start(threads, 4);
	for (int round = 0; round < 5; round++) {
		pid_t child = fork();
		CHECK(child >= 0);
		if (child == 0) {
			alarm(20);
			EXPECT(p11->C_GetSessionInfo(session, NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
			OK(p11->C_Initialize(NULL));
			check_works(open_session());
			OK(p11->C_Finalize(NULL));
			_exit(0);
		}
		CHECK(ended(child) == 0);
	}
	busy = 0;
	for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
	check_works(session);
}

int main(int count, char **arguments)
{
	pthread_t threads[4];
	const char *variant = count > 1 ? arguments[1] : "";
#define IS(name) (strcmp(variant, name) == 0)
	alarm(60);
	if (IS("atexit-before")) atexit(call_late);
	if (IS("finalize-atexit-before")) atexit(finalize_late);
	load();
	if (IS("library-before")) other_library("libdestructor.so");
	OK(p11->C_Initialize(NULL));
	session = open_session();
	check_works(session);

	if (IS("atexit-before") || IS("finalize-atexit-before")) return 0;
	if (IS("atexit-after")) {
		atexit(call_late);
	} else if (IS("finalize-atexit-after")) {
		atexit(finalize_late);
	} else if (IS("library-before") || IS("library-after")) {
		other_library("libdestructor.so");
	} else if (IS("exit-in-thread")) {
		start(threads, 2);
		pthread_create(&threads[3], NULL, exit_in_thread, NULL);
		pthread_join(threads[3], NULL);
	} else if (IS("return-while-working")) {
		start(threads, 4);
	} else if (IS("finalize-while-working")) {
		start(threads, 4);
		OK(p11->C_Finalize(NULL));
		pause_ms(2);
		busy = 0;
		for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
		EXPECT(p11->C_GetSessionInfo(session, NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	} else if (IS("finalize-and-initialize-while-working")) {
		start(threads, 4);
		for (int i = 0; i < 20; i++) {
			OK(p11->C_Finalize(NULL));
			OK(p11->C_Initialize(NULL));
		}
		busy = 0;
		for (int i = 0; i < 4; i++) pthread_join(threads[i], NULL);
	} else if (IS("finalize-in-thread-return-in-main")) {
		start(threads, 2);
		OK(p11->C_Finalize(NULL));
	} else if (IS("dlclose-before-finalize")) {
		CK_FUNCTION_LIST_3_2 *kept = p11;
		CHECK(dlclose(library) == 0);
		check_works(session);
		OK(kept->C_Finalize(NULL));
	} else if (IS("dlclose-after-finalize")) {
		CK_FUNCTION_LIST_3_2 *kept = p11;
		OK(p11->C_Finalize(NULL));
		CHECK(dlclose(library) == 0);
		EXPECT(kept->C_GetInfo(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	} else if (IS("dlclose-while-working")) {
		start(threads, 4);
		CHECK(dlclose(library) == 0);
		pause_ms(1);
	} else if (IS("load-again")) {
		CHECK(dlclose(library) == 0);
		load();
		EXPECT(p11->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
		check_works(session);
		OK(p11->C_Finalize(NULL));
		CHECK(dlclose(library) == 0);
		load();
		OK(p11->C_Initialize(NULL));
		check_works(open_session());
	} else if (IS("finalize-twice")) {
		OK(p11->C_Finalize(NULL));
		EXPECT(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	} else if (IS("fork-under-four-threads")) {
		fork_under_threads();
	} else if (IS("threads-end")) {
		for (int i = 0; i < 20; i++) {
			pthread_create(&threads[0], NULL, call_at_thread_end, NULL);
			pthread_join(threads[0], NULL);
		}
	} else if (IS("thread-destructor-before")) {
		/* This key is newer than the module's, so it is destroyed after it. */
		int rounds = 2;
		pthread_key_create(&key, thread_destructor);
		pthread_setspecific(key, &rounds);
		pthread_create(&threads[0], NULL, call_at_thread_end, NULL);
		pthread_join(threads[0], NULL);
		pthread_exit(NULL);
	} else if (IS("cancel-while-writing")) {
		/* A store's system calls are where a cancelled thread would leave. */
		make_token_once();
		OK(p11->C_Login(session, CKU_USER, user_pin, 4));
		for (int round = 0; round < 5; round++) {
			for (int i = 0; i < 3; i++)
				CHECK(pthread_create(&threads[i], NULL, write_keys, NULL) == 0);
			pause_ms(2);
			for (int i = 0; i < 3; i++) pthread_cancel(threads[i]);
			for (int i = 0; i < 3; i++) pthread_join(threads[i], NULL);
		}
		check_works(session);
		OK(p11->C_Finalize(NULL));
	} else if (IS("cancel-while-using-a-key")) {
		int done = 0;
		make_token_once();
		OK(p11->C_Login(session, CKU_USER, user_pin, 4));
		CHECK(pthread_create(&threads[0], NULL, use_key_cancelled, &done) == 0);
		CHECK(pthread_join(threads[0], NULL) == 0);
		CHECK(done);
		OK(p11->C_Finalize(NULL));
	} else if (IS("wait-for-slot-event")) {
		struct timespec before, after;
		CK_SLOT_ID slot;
		EXPECT(p11->C_WaitForSlotEvent(CKF_DONT_BLOCK, &slot, NULL), CKR_NO_EVENT);
		CHECK(pthread_create(&threads[0], NULL, wait_for_event, NULL) == 0);
		pause_ms(5);
		/* A thread that waits does not hold up those that fork. */
		clock_gettime(CLOCK_MONOTONIC, &before);
		for (int i = 0; i < 4; i++) {
			pid_t child = fork();
			if (child == 0) {
				EXPECT(p11->C_WaitForSlotEvent(0, &slot, NULL),
				       CKR_CRYPTOKI_NOT_INITIALIZED);
				_exit(0);
			}
			CHECK(ended(child) == 0);
		}
		clock_gettime(CLOCK_MONOTONIC, &after);
		CHECK((after.tv_sec - before.tv_sec) * 1000 + (after.tv_nsec - before.tv_nsec) / 1000000 < 1000);
		OK(p11->C_Finalize(NULL));
		CHECK(pthread_join(threads[0], NULL) == 0);
	} else {
		FAIL("no variant %s", variant);
	}
	fflush(stdout);
	return 0;
}
