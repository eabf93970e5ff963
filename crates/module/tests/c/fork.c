// SPDX-License-Identifier: Apache-2.0
/* What a forked child finds: nothing initialised, nothing of the parent's, and everything new after
 * C_Initialize. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE object;

/* Forks without telling the C library, as some sandboxes and language runtimes do. */
static pid_t raw_fork(void)
{
	return (pid_t)syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
}

static void child_that_initializes(void)
{
	CK_SESSION_INFO info;
	CK_BYTE value[16] = {9};
	CK_OBJECT_HANDLE own;
	EXPECT(p11->C_GetSessionInfo(session, &info), CKR_CRYPTOKI_NOT_INITIALIZED);
	EXPECT(p11->C_GetSlotList(1, NULL, &(CK_ULONG){0}), CKR_CRYPTOKI_NOT_INITIALIZED);
	OK(p11->C_Initialize(NULL));
	EXPECT(p11->C_Initialize(NULL), CKR_CRYPTOKI_ALREADY_INITIALIZED);
	/* Handles of the parent are not those of anything here, and never will be. */
	EXPECT(p11->C_GetSessionInfo(session, &info), CKR_SESSION_HANDLE_INVALID);
	for (int i = 0; i < 50; i++) CHECK(open_session() != session);
	CK_SESSION_HANDLE here = open_session();
	EXPECT(p11->C_GetObjectSize(here, object, &(CK_ULONG){0}), CKR_OBJECT_HANDLE_INVALID);
	own = import_key(here, CKK_AES, value, 16);
	CHECK(own != object);
	check_works(here);
	OK(p11->C_Finalize(NULL));
	EXPECT(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
}

static void child_that_finalizes_first(void)
{
	OK(p11->C_Finalize(NULL));
	EXPECT(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
	child_that_initializes();
}

static void child_that_forks(void)
{
	pid_t grandchild;
	OK(p11->C_Initialize(NULL));
	check_works(open_session());
	grandchild = fork();
	if (grandchild == 0) {
		child_that_initializes();
		_exit(0);
	}
	CHECK(ended(grandchild) == 0);
	check_works(open_session());
}

static void child_that_exits(void)
{
	/* With all exit handlers and destructors. */
	exit(0);
}

static void child_with_threads(void)
{
	child_that_initializes();
	OK(p11->C_Initialize(NULL));
	check_works(open_session());
}

static void run(pid_t (*how)(void), void (*what)(void))
{
	CK_BYTE random[16];
	pid_t child;
	/* Whatever threads keep for random numbers is there, and must not be used by the child. */
	OK(p11->C_GenerateRandom(session, random, sizeof random));
	child = how();
	CHECK(child >= 0);
	if (child == 0) {
		alarm(20);
		what();
		fflush(stdout);
		_exit(0);
	}
	CHECK(ended(child) == 0);
	check_works(session);
}

/* Two children of one parent do not make the same random numbers, nor does the parent. */
static void random_numbers_differ(void)
{
	CK_BYTE bytes[3][16];
	int ends[2];
	OK(p11->C_GenerateRandom(session, bytes[0], 16));
	CHECK(pipe(ends) == 0);
	for (int i = 0; i < 2; i++) {
		pid_t child = fork();
		if (child == 0) {
			CK_BYTE own[16];
			OK(p11->C_Initialize(NULL));
			OK(p11->C_GenerateRandom(open_session(), own, 16));
			CHECK(write(ends[1], own, 16) == 16);
			_exit(0);
		}
		CHECK(ended(child) == 0);
		CHECK(read(ends[0], bytes[1 + i], 16) == 16);
	}
	CHECK(memcmp(bytes[1], bytes[2], 16) != 0);
	OK(p11->C_GenerateRandom(session, bytes[0], 16));
	CHECK(memcmp(bytes[0], bytes[1], 16) != 0 && memcmp(bytes[0], bytes[2], 16) != 0);
}

static void parent_keeps_its_login(void)
{
	CK_SESSION_INFO info;
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_ULONG length = 16;
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_VALUE_LEN, &length, sizeof length},
		{CKA_TOKEN, &yes, 1},		   {CKA_PRIVATE, &yes, 1},
	};
	CK_OBJECT_HANDLE key;
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	OK(p11->C_GenerateKey(session, &generate, template, 4, &key));
	run(fork, child_that_initializes);
	run(raw_fork, child_that_initializes);
	OK(p11->C_GetSessionInfo(session, &info));
	CHECK(info.state == CKS_RW_USER_FUNCTIONS);
	OK(p11->C_DestroyObject(session, key));
	OK(p11->C_GenerateKey(session, &generate, template, 4, &key));

	/* A child logs in for itself and sees the token's objects. */
	pid_t child = fork();
	if (child == 0) {
		CK_ULONG count = 0;
		CK_OBJECT_HANDLE found;
		OK(p11->C_Initialize(NULL));
		session = open_session();
		OK(p11->C_GetSessionInfo(session, &info));
		CHECK(info.state == CKS_RW_PUBLIC_SESSION);
		OK(p11->C_Login(session, CKU_USER, user_pin, 4));
		OK(p11->C_FindObjectsInit(session, template, 1));
		OK(p11->C_FindObjects(session, &found, 1, &count));
		CHECK(count == 1);
		OK(p11->C_FindObjectsFinal(session));
		OK(p11->C_DestroyObject(session, found));
		_exit(0);
	}
	CHECK(ended(child) == 0);
	EXPECT(p11->C_GetObjectSize(session, key, &length), CKR_OBJECT_HANDLE_INVALID);
}

int main(void)
{
	CK_BYTE value[16] = {7};
	alarm(120);
	load();
	/* A fork before C_Initialize changes nothing. */
	pid_t child = fork();
	if (child == 0) {
		EXPECT(p11->C_Finalize(NULL), CKR_CRYPTOKI_NOT_INITIALIZED);
		_exit(0);
	}
	CHECK(ended(child) == 0);
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	object = import_key(session, CKK_AES, value, 16);
	for (int i = 0; i < 3; i++) {
		run(fork, child_that_initializes);
		run(fork, child_that_finalizes_first);
		run(fork, child_that_forks);
		run(fork, child_that_exits);
		run(fork, child_with_threads);
		run(raw_fork, child_that_initializes);
		run(raw_fork, child_that_finalizes_first);
	}
	random_numbers_differ();
	parent_keeps_its_login();
	OK(p11->C_Finalize(NULL));
	return 0;
}
