/* SPDX-License-Identifier: Apache-2.0 */
/* A host whose files may not grow (RLIMIT_FSIZE): what cannot be written is an error, and no signal ends the host. */
#include "common.h"
#include <sys/resource.h>

static void limit(rlim_t bytes)
{
	struct rlimit most = {bytes, RLIM_INFINITY};
	CHECK(setrlimit(RLIMIT_FSIZE, &most) == 0);
}

static CK_RV create(CK_SESSION_HANDLE session)
{
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_BYTE value[100000] = {0};
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_TOKEN, &yes, 1}, {CKA_VALUE, value, sizeof value}};
	CK_OBJECT_HANDLE object;
	return p11->C_CreateObject(session, template, 3, &object);
}

static void find(CK_SESSION_HANDLE session)
{
	CK_OBJECT_HANDLE object;
	CK_ULONG count;
	if (p11->C_FindObjectsInit(session, NULL, 0) != CKR_OK) return;
	p11->C_FindObjects(session, &object, 1, &count);
	OK(p11->C_FindObjectsFinal(session));
}

/* The signal is neither blocked nor pending. */
static void check_signal(void)
{
	sigset_t set;
	CHECK(pthread_sigmask(SIG_BLOCK, NULL, &set) == 0 && !sigismember(&set, SIGXFSZ));
	CHECK(sigpending(&set) == 0 && !sigismember(&set, SIGXFSZ));
}

static void *log_in(void *failed)
{
	CK_SESSION_HANDLE session;
	CK_RV rv = p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session);
	if (rv == CKR_OK) rv = p11->C_Login(session, CKU_USER, user_pin, 4);
	*(CK_RV *)failed = rv;
	check_signal();
	return NULL;
}

/* The store is opened, and nothing of it may grow. */
static void from_the_beginning(void)
{
	CK_TOKEN_INFO info;
	CK_SESSION_HANDLE session;
	CK_UTF8CHAR label[33] = "other                           ";
	CK_RV failed = CKR_OK;
	pthread_t thread;
	limit(0);
	OK(p11->C_Initialize(NULL));
	p11->C_GetTokenInfo(0, &info);
	p11->C_InitToken(0, so_pin, 8, label);
	CHECK(pthread_create(&thread, NULL, log_in, &failed) == 0 && pthread_join(thread, NULL) == 0);
	EXPECT(failed, CKR_DEVICE_MEMORY);
	if (p11->C_OpenSession(0, CKF_SERIAL_SESSION, NULL, NULL, &session) == CKR_OK) find(session);
	OK(p11->C_Finalize(NULL));
	check_signal();
}

/* It is open, and the host begins to limit itself. */
static void meanwhile(void)
{
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	limit(0);
	EXPECT(create(session), CKR_DEVICE_MEMORY);
	find(session);
	OK(p11->C_Logout(session));
	p11->C_Login(session, CKU_USER, user_pin, 4);
	p11->C_SetPIN(session, user_pin, 4, so_pin, 8);
	pid_t child = fork();
	if (child == 0) {
		from_the_beginning();
		_exit(0);
	}
	CHECK(ended(child) == 0);
	/* The fork has closed it. */
	find(session);
	check_signal();
	OK(p11->C_Finalize(NULL));
}

int main(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	OK(p11->C_Finalize(NULL));
	pid_t child = fork();
	if (child == 0) {
		from_the_beginning();
		_exit(0);
	}
	CHECK(ended(child) == 0);
	meanwhile();
	limit(RLIM_INFINITY);
	/* No right PIN has cost a try. */
	CK_TOKEN_INFO info;
	OK(p11->C_Initialize(NULL));
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK(!(info.flags & CKF_USER_PIN_COUNT_LOW));
	CK_SESSION_HANDLE session = user_session();
	OK(create(session));
	OK(p11->C_Finalize(NULL));
	return 0;
}
