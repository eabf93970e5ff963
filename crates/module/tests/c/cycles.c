// SPDX-License-Identifier: Apache-2.0
/* Load, initialise, use, finalise, close: 300 times. Memory and descriptors stay as they are. */
#include "common.h"
#include <malloc.h>

#define CYCLES 300

static int descriptors(void)
{
	int count = 0;
	DIR *directory = opendir("/proc/self/fd");
	while (readdir(directory) != NULL) count++;
	closedir(directory);
	return count;
}

/* What is allocated, and what is mapped besides the heap and the C library's arenas, in bytes. */
static long held(void)
{
	char line[512];
	long bytes = (long)mallinfo2().uordblks;
	FILE *file = fopen("/proc/self/maps", "r");
	CHECK(file != NULL);
	while (fgets(line, sizeof line, file) != NULL) {
		unsigned long start, end;
		CHECK(sscanf(line, "%lx-%lx", &start, &end) == 2);
		if (strstr(line, "[heap]") == NULL) bytes += (long)(end - start);
	}
	fclose(file);
	return bytes;
}

static void *in_thread(void *unused)
{
	(void)unused;
	check_works(open_session());
	return NULL;
}

static void cycle(int log_in)
{
	CK_BYTE value[16] = {5}, data[16] = {0}, out[16];
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_ULONG length = sizeof out;
	CK_SESSION_HANDLE session;
	CK_OBJECT_HANDLE key;
	pthread_t thread;
	load();
	OK(p11->C_Initialize(NULL));
	session = open_session();
	if (log_in) OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	key = import_key(session, CKK_AES, value, 16);
	OK(p11->C_EncryptInit(session, &ecb, key));
	OK(p11->C_Encrypt(session, data, 16, out, &length));
	check_works(session);
	OK(p11->C_FindObjectsInit(session, NULL, 0));
	OK(p11->C_FindObjects(session, &key, 1, &length));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(pthread_create(&thread, NULL, in_thread, NULL) == 0);
	pthread_join(thread, NULL);
	OK(p11->C_Finalize(NULL));
	CHECK(dlclose(library) == 0);
}

int main(void)
{
	long before, grown;
	int open;
	alarm(300);
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	OK(p11->C_Finalize(NULL));
	for (int i = 0; i < 10; i++) cycle(i < 2);
	before = held();
	open = descriptors();
	for (int i = 0; i < CYCLES; i++) cycle(i % 100 == 50);
	grown = held() - before;
	printf("%ld bytes per cycle, %d descriptors more\n", grown / CYCLES, descriptors() - open);
	CHECK(descriptors() == open);
	CHECK(grown / CYCLES < 1024);
	return 0;
}
