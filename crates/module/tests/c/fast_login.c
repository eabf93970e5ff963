/* SPDX-License-Identifier: Apache-2.0 */
/* Where the secret of a fast login is: with `kernel` in the kernel's keyring, with `denied` elsewhere, as in containers whose
 * profile denies the calls, and with `saved` nowhere, because root acts as another user for a while. What the interface says
 * of it is printed. */
#include "common.h"
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <sys/prctl.h>
#include <sys/stat.h>

#define REFUSE(call) \
	BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (call), 0, 1), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM)

static void deny_keys(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		REFUSE(SYS_add_key), REFUSE(SYS_keyctl), REFUSE(SYS_request_key),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = {sizeof filter / sizeof *filter, filter};
	CHECK(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	CHECK(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static CK_UTF8CHAR label[33] = "fast                            ", pin[] = "23456789";

static METASLOT_FAST_LOGIN asked(void)
{
	CK_INTERFACE *interface;
	METASLOT_FAST_LOGIN fast;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	METASLOT_FUNCTION_LIST *list = interface->pFunctionList;
	CHECK(list->version.major == 1 && list->version.minor >= 6);
	EXPECT(list->FastLogin(1, &fast), CKR_SLOT_ID_INVALID);
	EXPECT(list->FastLogin(0, NULL), CKR_ARGUMENTS_BAD);
	OK(list->FastLogin(0, &fast));
	return fast;
}

int main(int argc, char **argv)
{
	CHECK(argc == 2);
	if (strcmp(argv[1], "denied") == 0) deny_keys();
	if (strcmp(argv[1], "saved") == 0) CHECK(setresuid(54321, 54321, 0) == 0);
	load();
	OK(p11->C_Initialize(NULL));
	OK(p11->C_InitToken(0, so_pin, 8, label));
	CK_SESSION_HANDLE session = open_session();
	OK(p11->C_Login(session, CKU_SO, so_pin, 8));
	OK(p11->C_InitPIN(session, pin, 8));
	OK(p11->C_Logout(session));
	for (int i = 0; i < 3; i++) {
		OK(p11->C_Login(session, CKU_USER, pin, 8));
		OK(p11->C_Logout(session));
	}
	METASLOT_FAST_LOGIN fast = asked();
	CHECK(fast.ulSeconds == 900);
	int length = sizeof fast.text;
	while (length > 0 && fast.text[length - 1] == ' ') length--;
	printf("%d %.*s\n", fast.bPossible, length, fast.text);
	fflush(stdout);
	OK(p11->C_Finalize(NULL));
	return 0;
}
