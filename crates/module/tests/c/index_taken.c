/* SPDX-License-Identifier: Apache-2.0 */
/* The index of the log is taken away again and again while processes store and fork: what was acknowledged is there afterwards.
 * Arguments: the index's name, and for how many seconds. */
#include "common.h"

enum { PROCESSES = 6, MOST = 4000 };

static struct {
	atomic_int ready, end;
	char is_stored[PROCESSES][MOST];
} *shared;

static CK_OBJECT_CLASS class = CKO_DATA;

static void name_of(int process, int number, char name[32])
{
	snprintf(name, 32, "object %d of %d", number, process);
}

static void store(int process)
{
	char name[32];
	CK_OBJECT_HANDLE object;
	unsigned chance = (unsigned)process;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}, {CKA_LABEL, name, 0}};
	alarm(120);
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	shared->ready++;
	for (int number = 0; number < MOST && !shared->end; number++) {
		name_of(process, number, name);
		template[2].ulValueLen = strlen(name);
		shared->is_stored[process][number] = p11->C_CreateObject(session, template, 3, &object) == CKR_OK;
		if (rand_r(&chance) % 20 == 0) {
			pid_t child = fork();
			if (child == 0) _exit(0);
			CHECK(ended(child) == 0);
		}
		if (rand_r(&chance) % 10 == 0) pause_ms(rand_r(&chance) % 40);
	}
	OK(p11->C_Finalize(NULL));
	_exit(0);
}

int main(int argc, char **argv)
{
	pid_t processes[PROCESSES];
	unsigned chance = (unsigned)time(NULL);
	CK_ULONG stored = 0, lost = 0;
	CHECK(argc == 3);
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	CHECK(shared != MAP_FAILED);
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	OK(p11->C_Finalize(NULL));
	for (int at = 0; at < PROCESSES; at++) {
		processes[at] = fork();
		if (processes[at] == 0) store(at);
	}
	/* Attempts at the PIN would count while they fail. */
	while (shared->ready < PROCESSES) pause_ms(10);
	for (time_t end = time(NULL) + atoi(argv[2]); time(NULL) < end; pause_ms(rand_r(&chance) % 40)) unlink(argv[1]);
	shared->end = 1;
	for (int at = 0; at < PROCESSES; at++) CHECK(ended(processes[at]) == 0);
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	for (int at = 0; at < PROCESSES * MOST; at++) {
		char name[32];
		CK_OBJECT_HANDLE found;
		CK_ULONG count;
		if (!shared->is_stored[at / MOST][at % MOST]) continue;
		name_of(at / MOST, at % MOST, name);
		CK_ATTRIBUTE query = {CKA_LABEL, name, strlen(name)};
		OK(p11->C_FindObjectsInit(session, &query, 1));
		OK(p11->C_FindObjects(session, &found, 1, &count));
		OK(p11->C_FindObjectsFinal(session));
		stored++;
		lost += count == 0;
	}
	printf("%lu objects stored, %lu lost\n", stored, lost);
	CHECK(stored > 0 && lost == 0);
	OK(p11->C_Finalize(NULL));
	return 0;
}
