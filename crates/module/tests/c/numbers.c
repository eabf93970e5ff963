/* SPDX-License-Identifier: Apache-2.0 */
/* Threads search and store while others open files of the host's and the process forks: files of a token are opened and closed all the time, by
 * numbers that come and go, and no call fails. The argument: for how many seconds. */
#include "common.h"

enum { SEARCHING = 2, STORING = 1, OPENING = 4, THREADS = SEARCHING + STORING + OPENING };

static atomic_int end;
static CK_OBJECT_CLASS class = CKO_DATA;

static void *searching(void *argument)
{
	CK_SESSION_HANDLE session = open_session();
	CK_ATTRIBUTE template = {CKA_LABEL, "none", 4};
	CK_OBJECT_HANDLE found;
	CK_ULONG count;
	while (!end) {
		OK(p11->C_FindObjectsInit(session, &template, 1));
		OK(p11->C_FindObjects(session, &found, 1, &count));
		OK(p11->C_FindObjectsFinal(session));
	}
	return argument;
}

static void *storing(void *argument)
{
	CK_SESSION_HANDLE session = open_session();
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}};
	while (!end) {
		CK_OBJECT_HANDLE object;
		OK(p11->C_CreateObject(session, template, 2, &object));
		OK(p11->C_DestroyObject(session, object));
		usleep(500);
	}
	return argument;
}

static void *opening(void *argument)
{
	unsigned chance = *(unsigned *)argument;
	while (!end) {
		int files[8];
		for (int at = 0; at < 8; at++) {
			files[at] = open("/dev/null", O_RDONLY);
			if (rand_r(&chance) % 4 == 0) usleep(rand_r(&chance) % 50);
		}
		for (int at = 0; at < 8; at++) close(files[at]);
		usleep(rand_r(&chance) % 300);
	}
	return argument;
}

int main(int argc, char **argv)
{
	pthread_t threads[THREADS];
	unsigned chances[THREADS];
	CHECK(argc == 2);
	alarm(120);
	begin_as_user();
	for (int at = 0; at < THREADS; at++) {
		void *(*work)(void *) = at < SEARCHING ? searching : at < SEARCHING + STORING ? storing : opening;
		chances[at] = (unsigned)at;
		CHECK(pthread_create(&threads[at], NULL, work, &chances[at]) == 0);
	}
	int forks = 0;
	for (time_t until = time(NULL) + atoi(argv[1]); time(NULL) < until; forks++) {
		pid_t child = fork();
		if (child == 0) _exit(0);
		CHECK(ended(child) == 0);
		usleep(300);
	}
	end = 1;
	for (int at = 0; at < THREADS; at++) CHECK(pthread_join(threads[at], NULL) == 0);
	printf("%d forks\n", forks);
	OK(p11->C_Finalize(NULL));
	return 0;
}
