/* SPDX-License-Identifier: Apache-2.0 */
/* What the boundary tests share. Failures go to standard output, because nothing may ever be
 * written to standard error. */
#ifndef COMMON_H
#define COMMON_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <metaslot/metaslot.h>

static CK_FUNCTION_LIST_3_2 *p11;
static void *library;

#define FAIL(...) \
	do { \
		printf("%s:%d: ", __FILE__, __LINE__); \
		printf(__VA_ARGS__); \
		printf("\n"); \
		fflush(stdout); \
		_exit(1); \
	} while (0)
#define CHECK(condition) \
	do { \
		if (!(condition)) FAIL("%s", #condition); \
	} while (0)
#define EXPECT(call, expected) \
	do { \
		CK_RV rv_ = (call); \
		if (rv_ != (CK_RV)(expected)) FAIL("%s: 0x%lx, not %s", #call, rv_, #expected); \
	} while (0)
#define OK(call) EXPECT(call, CKR_OK)

static const char *module_path(void)
{
	const char *path = getenv("METASLOT_MODULE");
	if (path == NULL) FAIL("METASLOT_MODULE is not set");
	return path;
}

/* Loads the module and finds its functions, by the interface of 3.2. */
static inline void load(void)
{
	CK_RV (*get)(CK_UTF8CHAR *, CK_VERSION *, CK_INTERFACE **, CK_FLAGS);
	CK_INTERFACE *interface;
	CK_VERSION version = {3, 2};
	library = dlopen(module_path(), RTLD_NOW | RTLD_LOCAL);
	if (library == NULL) FAIL("%s", dlerror());
	*(void **)&get = dlsym(library, "C_GetInterface");
	CHECK(get != NULL);
	OK(get((CK_UTF8CHAR *)"PKCS 11", &version, &interface, 0));
	p11 = interface->pFunctionList;
}

static inline CK_SESSION_HANDLE open_session(void)
{
	CK_SESSION_HANDLE session;
	OK(p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
	return session;
}

static CK_UTF8CHAR so_pin[] = "12345678", user_pin[] = "1234";

/* Makes a token with both PINs; not logged in afterwards. */
static inline void make_token(void)
{
	CK_UTF8CHAR label[33] = "boundary                        ";
	CK_SESSION_HANDLE session;
	OK(p11->C_InitToken(0, so_pin, 8, label));
	session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, user_pin, 4));
	OK(p11->C_CloseSession(session));
}

/* A session of the user. */
static inline CK_SESSION_HANDLE user_session(void)
{
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	return session;
}

/* The same from the beginning, with a new token. */
static inline CK_SESSION_HANDLE begin_as_user(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	return user_session();
}

static CK_BBOOL yes = CK_TRUE, no = CK_FALSE;

/* A secret key as a session object, with a value of the caller's choice. */
static inline CK_OBJECT_HANDLE import_key(CK_SESSION_HANDLE session, CK_KEY_TYPE type,
					  CK_BYTE *value, CK_ULONG length)
{
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_OBJECT_HANDLE key = 0;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type},
		{CKA_VALUE, value, length},	   {CKA_SENSITIVE, &yes, 1},
		{CKA_EXTRACTABLE, &no, 1},
	};
	OK(p11->C_CreateObject(session, template, 5, &key));
	return key;
}

static inline void sha256(CK_SESSION_HANDLE session, void *data, CK_ULONG length, CK_BYTE out[32])
{
	CK_MECHANISM mechanism = {CKM_SHA256, NULL, 0};
	CK_ULONG out_length = 32;
	OK(p11->C_DigestInit(session, &mechanism));
	OK(p11->C_Digest(session, data, length, out, &out_length));
	CHECK(out_length == 32);
}

/* The digest of "abc" is right. */
static inline void check_works(CK_SESSION_HANDLE session)
{
	static const CK_BYTE expected[4] = {0xba, 0x78, 0x16, 0xbf};
	CK_BYTE out[32];
	sha256(session, "abc", 3, out);
	CHECK(memcmp(out, expected, 4) == 0);
}

/* How a child ended; 0 when it exited with 0. */
static inline int ended(pid_t child)
{
	int status = 0;
	CHECK(waitpid(child, &status, 0) == child);
	return status;
}

static inline void pause_ms(long ms)
{
	struct timespec time = {ms / 1000, ms % 1000 * 1000000};
	nanosleep(&time, NULL);
}

#endif
