/* SPDX-License-Identifier: Apache-2.0 */
/* A lock of the store is not given up, once, as on a network file system that fails: the call after it may say so, and later ones work. */
#include "common.h"

#include <stdarg.h>
#include <sys/syscall.h>

/* What SQLite locks in the index of the log (its format's description, 2.3.1): the first of what only one may do, and a reader's place. */
enum { WRITER = 120, READER = 124 };

static _Atomic long fails = -1;

int fcntl64(int file, int command, ...)
{
	va_list arguments;
	va_start(arguments, command);
	void *argument = va_arg(arguments, void *);
	va_end(arguments);
	struct flock *lock = argument;
	if (command == F_SETLK && lock->l_type == F_UNLCK && lock->l_start == fails) {
		fails = -1;
		errno = EIO;
		return -1;
	}
	return syscall(SYS_fcntl, file, command, argument);
}

int fcntl(int, int, ...) __attribute__((alias("fcntl64")));

static CK_RV generate(CK_SESSION_HANDLE session)
{
	CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG length = 32;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &length, sizeof length}, {CKA_TOKEN, &yes, 1}};
	CK_OBJECT_HANDLE key;
	return p11->C_GenerateKey(session, &mechanism, template, 2, &key);
}

/* A process that does nothing more has such a lock, as far as SQLite tells it: others do not wait for it. */
static CK_SESSION_HANDLE beside_one_that_idles(void)
{
	int there[2], back[2];
	char byte;
	CHECK(pipe(there) == 0 && pipe(back) == 0);
	OK(p11->C_Finalize(NULL));
	pid_t child = fork();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	if (child == 0) {
		close(there[1]);
		fails = WRITER;
		OK(generate(session));
		CHECK(fails < 0 && write(back[1], "", 1) == 1 && read(there[0], &byte, 1) == 1);
		OK(generate(session));
		_exit(0);
	}
	CHECK(read(back[0], &byte, 1) == 1);
	OK(generate(session));
	CHECK(write(there[1], "", 1) == 1 && ended(child) == 0);
	return session;
}

int main(void)
{
	CK_SESSION_HANDLE session;
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = beside_one_that_idles();
	for (int at = 0; at < 3; at++) {
		int refused = 0;
		fails = at == 0 ? WRITER : READER;
		/* The last one while the store is opened. */
		if (at == 2) {
			OK(p11->C_Finalize(NULL));
			OK(p11->C_Initialize(NULL));
			session = open_session();
		}
		for (int round = 0; round < 5; round++) {
			CK_RV rv = p11->C_Login(session, CKU_USER, user_pin, 4);
			if (rv == CKR_OK || rv == CKR_USER_ALREADY_LOGGED_IN) rv = generate(session);
			CHECK(rv == CKR_OK || (rv == CKR_DEVICE_ERROR && fails < 0));
			refused += rv != CKR_OK;
		}
		CHECK(fails < 0 && refused <= 1);
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
