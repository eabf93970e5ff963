/* SPDX-License-Identifier: Apache-2.0 */
/* A process has looked at the anchor and is about to write there what it has changed, when others get copies of its files, the lock too:
 * the anchor does not go back from what they write to that. Arguments: the directory of the store, the anchor, and a third of the other. */
#include "common.h"

static const char *store, *anchor, *self;
static atomic_bool armed;

static CK_ULONG commits(void)
{
	CK_ULONG number[2];
	int file = open(anchor, O_RDONLY);
	CHECK(file >= 0 && read(file, number, sizeof(number)) == sizeof(number));
	close(file);
	return number[1];
}

static void change(CK_SESSION_HANDLE session)
{
	CK_OBJECT_CLASS class = CKO_DATA;
	CK_ATTRIBUTE template[] = {{CKA_CLASS, &class, sizeof(class)}, {CKA_TOKEN, &yes, 1}};
	CK_OBJECT_HANDLE object;
	OK(p11->C_CreateObject(session, template, 2, &object));
}

/* As the library finds it, which gets this one by `-rdynamic`. */
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at)
{
	char link[64], name[512], line[2048];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t named = readlink(link, name, sizeof(name) - 1);
	name[named > 0 ? named : 0] = 0;
	if (strcmp(name, anchor) == 0 && atomic_exchange(&armed, 0)) {
		snprintf(line, sizeof(line), "cp -a %s new && mv %s old && mv new %s && (%s %s %s other; mv last done) &", store, store,
			 store, self, store, anchor);
		CHECK(system(line) == 0);
		sleep(1);
	}
	return syscall(SYS_pwrite64, file, bytes, length, at);
}

static void go_on(void)
{
	load();
	OK(p11->C_Initialize(NULL));
	CK_SESSION_HANDLE session = user_session();
	for (int i = 0; i < 3; i++) change(session);
	FILE *last = fopen("last", "w");
	CHECK(last != NULL && fprintf(last, "%lu", commits()) > 0 && fclose(last) == 0);
	OK(p11->C_Finalize(NULL));
}

int main(int argc, char **argv)
{
	CK_ULONG last = 0;
	CHECK(argc >= 3);
	self = argv[0];
	store = argv[1];
	anchor = argv[2];
	if (argc == 4) {
		go_on();
		return 0;
	}
	CK_SESSION_HANDLE session = begin_as_user();
	CK_ULONG before = commits();
	atomic_store(&armed, 1);
	change(session);
	CHECK(!atomic_load(&armed));
	for (int i = 0; access("done", F_OK) != 0; i++) {
		CHECK(i < 1000);
		pause_ms(10);
	}
	FILE *said = fopen("done", "r");
	CHECK(said != NULL && fscanf(said, "%lu", &last) == 1 && fclose(said) == 0);
	CHECK(last == before + 4);
	CHECK(commits() == last);
	OK(p11->C_Finalize(NULL));
	return 0;
}
