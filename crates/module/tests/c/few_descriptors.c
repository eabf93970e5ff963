/* SPDX-License-Identifier: Apache-2.0 */
/* A process may have few files open, from its beginning or after its login, and more later: what was acknowledged is there, and all works when it may
 * have more. */
#include "common.h"
#include <sys/resource.h>

enum { FEWEST = 3, MOST = 20 };

static CK_SESSION_HANDLE session;
static CK_OBJECT_CLASS class = CKO_DATA;

static void limit(rlim_t files)
{
	struct rlimit limit = {files, 1024};
	CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
}

static int store(void)
{
	CK_OBJECT_HANDLE object;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}};
	return p11->C_CreateObject(session, template, 2, &object) == CKR_OK;
}

static int work(int late, rlim_t files)
{
	int stored = 0;
	load();
	if (!late) limit(files);
	OK(p11->C_Initialize(NULL));
	if (p11->C_OpenSession(0, CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session) == CKR_OK)
		p11->C_Login(session, CKU_USER, user_pin, 4);
	limit(files);
	for (int at = 0; at < 3; at++) {
		pid_t child = fork();
		if (child == 0) _exit(0);
		CHECK(ended(child) == 0);
		stored += store();
	}
	limit(1024);
	session = open_session();
	CK_RV rv = p11->C_Login(session, CKU_USER, user_pin, 4);
	if (rv != CKR_USER_ALREADY_LOGGED_IN) OK(rv);
	CHECK(store());
	OK(p11->C_Finalize(NULL));
	return stored + 1;
}

static void look(int stored)
{
	CK_OBJECT_HANDLE found[10];
	CK_ULONG count;
	CK_ATTRIBUTE query = {CKA_CLASS, &class, sizeof(class)};
	load();
	OK(p11->C_Initialize(NULL));
	session = user_session();
	OK(p11->C_FindObjectsInit(session, &query, 1));
	OK(p11->C_FindObjects(session, found, 10, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == (CK_ULONG)stored);
	while (count > 0) OK(p11->C_DestroyObject(session, found[--count]));
	OK(p11->C_Finalize(NULL));
}

int main(void)
{
	alarm(200);
	pid_t child = fork();
	if (child == 0) {
		begin_as_user();
		OK(p11->C_Finalize(NULL));
		_exit(0);
	}
	CHECK(ended(child) == 0);
	for (int late = 0; late < 2; late++)
		for (rlim_t files = FEWEST; files <= MOST; files++) {
			child = fork();
			if (child == 0) _exit(work(late, files) | 0x80);
			int status = ended(child);
			if (!WIFEXITED(status) || !(WEXITSTATUS(status) & 0x80))
				FAIL("%d with %lu files, late: %d", status, (unsigned long)files, late);
			child = fork();
			if (child == 0) {
				look(WEXITSTATUS(status) & 0x7f);
				_exit(0);
			}
			CHECK(ended(child) == 0);
		}
	return 0;
}
