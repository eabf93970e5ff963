/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a long log is taken away while a process has it, and another process ends the log: the first one reads what it has stored.
 * The argument is the index's name. */
#include "common.h"

enum { OBJECTS = 60 };

static CK_BYTE value[9000];

static void store(CK_SESSION_HANDLE session)
{
	CK_OBJECT_HANDLE object;
	static CK_OBJECT_CLASS class = CKO_DATA;
	CK_ATTRIBUTE template[] = {
		{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}, {CKA_VALUE, value, sizeof(value)},
	};
	OK(p11->C_CreateObject(session, template, 3, &object));
}

static void find(CK_SESSION_HANDLE session, CK_OBJECT_HANDLE objects[OBJECTS])
{
	CK_ULONG count;
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	OK(p11->C_FindObjects(session, objects, OBJECTS, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == OBJECTS);
}

static void byte(int pipes[2], int writes)
{
	char one = 0;
	CHECK((writes ? write(pipes[1], &one, 1) : read(pipes[0], &one, 1)) == 1);
}

static void other(const char *index, int ready[2], int ended_log[2])
{
	alarm(60);
	byte(ready, 0);
	CHECK(unlink(index) == 0);
	OK(p11->C_Initialize(NULL));
	user_session();
	OK(p11->C_Finalize(NULL));
	byte(ended_log, 1);
	_exit(0);
}

int main(int argc, char **argv)
{
	CK_OBJECT_HANDLE objects[OBJECTS];
	int ready[2], ended_log[2];
	CHECK(argc == 2 && pipe(ready) == 0 && pipe(ended_log) == 0);
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	OK(p11->C_Finalize(NULL));
	pid_t child = fork();
	if (child == 0) other(argv[1], ready, ended_log);
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	for (int at = 0; at < OBJECTS; at++) store(session);
	find(session, objects);
	byte(ready, 1);
	byte(ended_log, 0);
	find(session, objects);
	for (int at = 0; at < OBJECTS; at++) {
		CK_ATTRIBUTE read = {CKA_VALUE, value, sizeof(value)};
		OK(p11->C_GetAttributeValue(session, objects[at], &read, 1));
	}
	CHECK(ended(child) == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
