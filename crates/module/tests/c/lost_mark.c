/* SPDX-License-Identifier: Apache-2.0 */
/* A copy of a token whose mark that it is one cannot be moved from its log into its file is no copy: where the file cannot be written, and
 * where another program reads it. Argument: its name. */
#include "common.h"

/* Whether the log of a copy has something, so that only what is moved out of it is written to the file. */
static atomic_bool logged;
static CK_BBOOL fails = CK_TRUE;

/* As who reads the file, and not the log, by the index of this name. */
static void read_on(const char *index)
{
	struct flock reads = {.l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 123, .l_len = 1};
	int file = open(index, O_RDWR);
	CHECK(file >= 0 && fcntl(file, F_OFD_SETLK, &reads) == 0);
}

/* As the library finds it, which gets this one by `-rdynamic`. */
ssize_t pwrite64(int file, const void *bytes, size_t length, off64_t at)
{
	char link[64], name[512];
	snprintf(link, sizeof(link), "/proc/self/fd/%d", file);
	ssize_t named = readlink(link, name, sizeof(name) - 1);
	name[named > 0 ? named : 0] = 0;
	const char *room = strstr(name, "/.metaslot-"), *copy = room ? strstr(room, "/token") : NULL;
	if (copy != NULL && strcmp(copy, "/token-wal") == 0 && !atomic_exchange(&logged, 1) && !fails)
		read_on(strcpy(name + named - 3, "shm") + 3 - named);
	if (fails && copy != NULL && strcmp(copy, "/token") == 0 && atomic_load(&logged)) {
		errno = EIO;
		return -1;
	}
	return syscall(SYS_pwrite64, file, bytes, length, at);
}

int main(int argc, char **argv)
{
	CK_INTERFACE *interface;
	METASLOT_EXAMINED examined;
	CHECK(argc == 2);
	begin_as_user();
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	METASLOT_FUNCTION_LIST *metaslot = interface->pFunctionList;
	for (int round = 0; round < 2; round++) {
		fails = round == 0;
		atomic_store(&logged, 0);
		EXPECT(metaslot->CopyToken(0, CKU_USER, user_pin, 4, (CK_UTF8CHAR *)argv[1], strlen(argv[1]), CK_FALSE, NULL, NULL,
					   &examined),
		       CKR_DEVICE_ERROR);
		CHECK(atomic_load(&logged) && access(argv[1], F_OK) != 0);
	}
	OK(p11->C_Finalize(NULL));
	return 0;
}
