/* SPDX-License-Identifier: Apache-2.0 */
/* An older copy of the token's file is put back under a process that has signed with one-time keys since, and given IVs: it gives none
 * of them again, after a logout neither. Arguments: the file, and the kind. */
#include "one_time.h"

enum { TREE = 5, CHAIN = 4 };

static CK_SESSION_HANDLE session;
static const char *path;

static CK_RV sign(void)
{
	CK_BYTE signature[8000];
	CK_ULONG length = sizeof(signature);
	return sign_once(session, find_labelled(session, signing, "key"), "message", 7, signature, &length);
}

/* With a counted IV. */
static CK_RV seal_as(CK_BYTE *iv, CK_ULONG iv_length, CK_ULONG fixed)
{
	CK_BYTE tag[16], text[8] = {0}, sealed[8];
	CK_MECHANISM mechanism = {CKM_AES_GCM, NULL, 0};
	CK_GCM_MESSAGE_PARAMS gcm = {iv, iv_length, fixed, CKG_GENERATE_COUNTER, tag, 128};
	CK_ULONG length = sizeof(sealed);
	OK(p11->C_MessageEncryptInit(session, &mechanism, find_labelled(session, CKO_SECRET_KEY, "key")));
	CK_RV rv = p11->C_EncryptMessage(session, &gcm, sizeof(gcm), NULL, 0, text, sizeof(text), sealed, &length);
	OK(p11->C_MessageEncryptFinal(session));
	return rv;
}

/* With an IV that was not there before, or not at all. */
static void seal(void)
{
	static CK_ULONG seen[64], count;
	CK_BYTE iv[12] = {0};
	CK_RV rv = seal_as(iv, sizeof(iv), 32);
	if (rv != CKR_OK) {
		EXPECT(rv, CKR_MECHANISM_PARAM_INVALID);
		return;
	}
	CK_ULONG number = big_endian(iv + 8, 4);
	for (CK_ULONG i = 0; i < count; i++) CHECK(seen[i] != number);
	seen[count++] = number;
}

static void make(void)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG tree = TREE, chain = CHAIN, length = 32;
	CK_ATTRIBUTE secret[] = {{CKA_TOKEN, &yes, 1}, {CKA_LABEL, "key", 3}, {CKA_VALUE_LEN, &length, sizeof(length)},
				 {CKA_ENCRYPT, &yes, 1}};
	CK_OBJECT_HANDLE keys[2];
	OK(make_one_time(session, "key", 1, &tree, &chain, keys));
	OK(p11->C_GenerateKey(session, &generate, secret, 4, keys));
}

/* Written over what is there, as `cp` does it. */
static void copy(const char *from, const char *suffix, const char *to, const char *other)
{
	static char bytes[1 << 20], names[2][512];
	snprintf(names[0], sizeof(names[0]), "%s%s", from, suffix);
	snprintf(names[1], sizeof(names[1]), "%s%s", to, other);
	int in = open(names[0], O_RDONLY), out = open(names[1], O_WRONLY | O_CREAT | O_TRUNC, 0600);
	CHECK(out >= 0);
	ssize_t length = in < 0 ? 0 : read(in, bytes, sizeof(bytes));
	CHECK(length >= 0 && length < (ssize_t)sizeof(bytes) && write(out, bytes, length) == length);
	close(in);
	close(out);
}

/* The copies of a store before it has the key, and with it. */
static const char *const empty[] = {".1", ".2", ".3", ".4"}, *const older[] = {".5", ".6", ".7", ".8"};

/* No database is open between two calls of ours that have come to rest. */
static void all(const char *const copies[4], CK_BBOOL back)
{
	static const char *const files[] = {"", "-wal", "-shm", ".gen"};
	for (int i = 0; i < 4; i++) copy(path, back ? copies[i] : files[i], path, back ? files[i] : copies[i]);
}

static void refused(void)
{
	EXPECT(sign(), CKR_KEY_FUNCTION_NOT_PERMITTED);
	seal();
}

/* Both keys, until an older store has them again. */
static void keys_are_gone(CK_OBJECT_HANDLE one_time_key, CK_OBJECT_HANDLE secret_key, CK_BBOOL destroyed)
{
	CK_MECHANISM gcm = {CKM_AES_GCM, NULL, 0};
	if (destroyed) {
		OK(p11->C_DestroyObject(session, one_time_key));
		OK(p11->C_DestroyObject(session, secret_key));
	} else {
		all(empty, CK_TRUE);
	}
	CHECK(p11->C_SignInit(session, &one_time, one_time_key) == CKR_KEY_HANDLE_INVALID);
	CHECK(p11->C_MessageEncryptInit(session, &gcm, secret_key) == CKR_KEY_HANDLE_INVALID);
	all(older, CK_TRUE);
}

/* Another key in the rows of one that an older store does not have: its own seeds sign. */
static CK_RV another_takes_its_rows(void)
{
	CK_BYTE signature[8000];
	CK_ULONG length = sizeof(signature);
	all(empty, CK_TRUE);
	make();
	CK_RV rv = sign_once(session, find_labelled(session, signing, "key"), "message", 7, signature, &length);
	if (rv != CKR_OK || signing == CKO_OTP_KEY) return rv;
	OK(p11->C_VerifyInit(session, &one_time, find_labelled(session, CKO_PUBLIC_KEY, "key")));
	OK(p11->C_Verify(session, (CK_BYTE_PTR) "message", 7, signature, length));
	return rv;
}

int main(int argc, char **argv)
{
	CK_BYTE iv[8] = {0};
	CHECK(argc == 3);
	path = argv[1];
	choose(argv[2]);
	session = begin_as_user();
	OK(p11->C_Finalize(NULL));
	all(empty, CK_FALSE);
	OK(p11->C_Initialize(NULL));
	session = user_session();
	make();
	OK(p11->C_SignInit(session, &one_time, find_labelled(session, signing, "key")));
	OK(p11->C_SignInit(session, NULL, 0));
	OK(another_takes_its_rows());
	OK(sign());
	seal();
	OK(p11->C_Finalize(NULL));
	all(older, CK_FALSE);
	OK(p11->C_Initialize(NULL));
	session = user_session();
	for (int i = 0; i < 3; i++) OK(sign());
	seal();
	OK(seal_as(iv, sizeof(iv), 32));
	all(older, CK_TRUE);
	refused();
	/* The older store does not know of the counter that this one could meet. */
	EXPECT(seal_as(iv, sizeof(iv), 24), CKR_MECHANISM_PARAM_INVALID);
	OK(p11->C_Logout(session));
	OK(p11->C_Login(session, CKU_USER, user_pin, 4));
	refused();
	/* Nor where the key is gone for a while, or destroyed. */
	keys_are_gone(find_labelled(session, signing, "key"), find_labelled(session, CKO_SECRET_KEY, "key"), CK_FALSE);
	refused();
	keys_are_gone(find_labelled(session, signing, "key"), find_labelled(session, CKO_SECRET_KEY, "key"), CK_TRUE);
	refused();
	OK(another_takes_its_rows());
	OK(p11->C_Finalize(NULL));
	return 0;
}
