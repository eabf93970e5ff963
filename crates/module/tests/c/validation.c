/* SPDX-License-Identifier: Apache-2.0 */
/* C_LoginUser, and what C_GetSessionValidationFlags says under one policy and another. The file of METASLOT_CONF is ours to write. */
#include "common.h"

static CK_SESSION_HANDLE session;

static void policy(const char *name)
{
	const char *path = getenv("METASLOT_CONF");
	char fresh[5000];
	snprintf(fresh, sizeof fresh, "%s.new", path);
	FILE *file = fopen(fresh, "w");
	CHECK(file != NULL && fprintf(file, "[[token]]\npath = \"%s.db\"\npolicy = \"%s\"\n", path, name) > 0);
	CHECK(fclose(file) == 0 && rename(fresh, path) == 0);
}

static CK_FLAGS flags(void)
{
	CK_FLAGS said = 77, other = 77;
	OK(p11->C_GetSessionValidationFlags(session, CKS_LAST_VALIDATION_OK, &said));
	OK(p11->C_GetSessionValidationFlags(session, 4711, &other));
	CHECK(other == 0);
	return said;
}

static CK_RV digest(CK_MECHANISM_TYPE type)
{
	CK_MECHANISM mechanism = {type, NULL, 0};
	CK_BYTE out[64];
	CK_ULONG length = sizeof out;
	CK_RV rv = p11->C_DigestInit(session, &mechanism);
	return rv == CKR_OK ? p11->C_Digest(session, (CK_BYTE *)"abc", 3, out, &length) : rv;
}

/* MD5 is approved for nothing. */
static void becomes(CK_RV wanted)
{
	time_t start = time(NULL);
	while (digest(CKM_MD5) != wanted) {
		CHECK(time(NULL) - start < 60);
		pause_ms(1);
	}
}

static CK_OBJECT_HANDLE key(void)
{
	CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
	CK_ULONG bytes = 16;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &bytes, sizeof bytes}};
	CK_OBJECT_HANDLE made;
	OK(p11->C_GenerateKey(session, &mechanism, template, 1, &made));
	return made;
}

/* There is no validation that a key could be consistent with (PKCS#11 3.2 §4.7), and only the token says so. */
static void key_flags(CK_OBJECT_HANDLE made)
{
	CK_FLAGS said = 77;
	CK_ULONG bytes = 16, count = 0;
	CK_MECHANISM mechanism = {CKM_AES_KEY_GEN, NULL, 0};
	CK_OBJECT_HANDLE found[2];
	CK_ATTRIBUTE asked = {CKA_OBJECT_VALIDATION_FLAGS, &said, sizeof said};
	OK(p11->C_GetAttributeValue(session, made, &asked, 1));
	CHECK(said == 0 && asked.ulValueLen == sizeof said);
	OK(p11->C_FindObjectsInit(session, &asked, 1));
	OK(p11->C_FindObjects(session, found, 2, &count));
	OK(p11->C_FindObjectsFinal(session));
	CHECK(count == 1 && found[0] == made);
	EXPECT(p11->C_SetAttributeValue(session, made, &asked, 1), CKR_ATTRIBUTE_READ_ONLY);
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &bytes, sizeof bytes}, asked};
	EXPECT(p11->C_GenerateKey(session, &mechanism, template, 2, found), CKR_ATTRIBUTE_READ_ONLY);
}

/* The public half of a new pair, made of the private one. */
static void public_half(void)
{
	CK_MECHANISM pair = {CKM_EC_KEY_PAIR_GEN, NULL, 0}, half = {CKM_PUB_KEY_FROM_PRIV_KEY, NULL, 0};
	CK_BYTE p256[] = {0x06, 0x08, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x03, 0x01, 0x07};
	CK_ATTRIBUTE template[] = {{CKA_EC_PARAMS, p256, sizeof p256}};
	CK_SESSION_HANDLE own = open_session();
	CK_OBJECT_HANDLE public, private;
	OK(p11->C_GenerateKeyPair(own, &pair, template, 1, NULL, 0, &public, &private));
	OK(p11->C_DeriveKey(session, &half, private, NULL, 0, &public));
	OK(p11->C_CloseSession(own));
}

/* A key that can be read is wrapped; by modes that do not authenticate under the other policy alone. */
static void wraps(CK_RV bare)
{
	CK_MECHANISM generate = {CKM_AES_KEY_GEN, NULL, 0};
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0}, kwp = {CKM_AES_KEY_WRAP_KWP, NULL, 0};
	CK_BYTE iv[16] = {0}, out[64] = {0};
	CK_MECHANISM ofb = {CKM_AES_OFB, iv, sizeof iv}, cts = {CKM_AES_CTS, iv, sizeof iv};
	CK_ULONG bytes = 16, length = sizeof out;
	CK_ATTRIBUTE template[] = {{CKA_VALUE_LEN, &bytes, sizeof bytes}, {CKA_WRAP, &yes, 1}, {CKA_UNWRAP, &yes, 1},
				   {CKA_EXTRACTABLE, &yes, 1}, {CKA_SENSITIVE, &no, 1}};
	CK_OBJECT_CLASS class = CKO_SECRET_KEY;
	CK_KEY_TYPE type = CKK_AES;
	CK_ATTRIBUTE aes[] = {{CKA_CLASS, &class, sizeof class}, {CKA_KEY_TYPE, &type, sizeof type}};
	CK_SESSION_HANDLE own = open_session();
	CK_OBJECT_HANDLE made, opened;
	OK(p11->C_GenerateKey(own, &generate, template, 5, &made));
	EXPECT(p11->C_WrapKey(own, &ecb, made, made, out, &length), bare);
	length = sizeof out;
	EXPECT(p11->C_WrapKey(own, &ofb, made, made, out, &length), bare);
	length = sizeof out;
	EXPECT(p11->C_WrapKey(own, &cts, made, made, out, &length), bare);
	/* What there is may be opened. */
	OK(p11->C_UnwrapKey(own, &ecb, made, out, 16, aes, 2, &opened));
	length = sizeof out;
	OK(p11->C_WrapKey(own, &kwp, made, made, out, &length));
	OK(p11->C_CloseSession(own));
}

/* A message of several. */
static void message(void)
{
	static CK_BYTE iv[12], tag[16], text[1], sealed[1];
	CK_GCM_MESSAGE_PARAMS gcm = {iv, 12, 0, CKG_GENERATE, tag, 128};
	CK_ULONG length = 1;
	OK(p11->C_EncryptMessage(session, &gcm, sizeof gcm, NULL, 0, text, 1, sealed, &length));
}

/* Whatever the policy, a user without a name is who logs in. */
static void login(void)
{
	CK_UTF8CHAR name[] = "alice", wrong[] = "4321";
	EXPECT(p11->C_LoginUser(4711, CKU_USER, user_pin, 4, NULL, 0), CKR_SESSION_HANDLE_INVALID);
	EXPECT(p11->C_LoginUser(session, CKU_USER, user_pin, 4, name, 5), CKR_PIN_INCORRECT);
	EXPECT(p11->C_LoginUser(session, CKU_USER, user_pin, 4, NULL, 5), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_LoginUser(session, CKU_USER, wrong, 4, NULL, 0), CKR_PIN_INCORRECT);
	EXPECT(p11->C_LoginUser(session, 7, user_pin, 4, NULL, 0), CKR_USER_TYPE_INVALID);
	OK(p11->C_LoginUser(session, CKU_USER, user_pin, 4, name, 0));
	EXPECT(p11->C_LoginUser(session, CKU_USER, user_pin, 4, NULL, 0), CKR_USER_ALREADY_LOGGED_IN);
	OK(p11->C_Logout(session));
	OK(p11->C_LoginUser(session, CKU_USER, user_pin, 4, NULL, 0));
}

int main(void)
{
	CK_MECHANISM ecb = {CKM_AES_ECB, NULL, 0};
	CK_BYTE block[16] = {0}, out[16], digested[16];
	CK_ULONG length = 16;
	load();
	policy("default");
	OK(p11->C_Initialize(NULL));
	make_token();
	policy("fips");
	session = open_session();
	becomes(CKR_MECHANISM_INVALID);
	OK(p11->C_CloseSession(session));
	session = open_session();
	login();
	EXPECT(p11->C_GetSessionValidationFlags(session, CKS_LAST_VALIDATION_OK, NULL), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_GetSessionValidationFlags(4711, CKS_LAST_VALIDATION_OK, &length),
	       CKR_SESSION_HANDLE_INVALID);
	/* Nothing was done. */
	CHECK(flags() == 0);
	EXPECT(digest(CKM_MD5), CKR_MECHANISM_INVALID);
	CHECK(flags() == 0);
	wraps(CKR_MECHANISM_INVALID);
	CK_OBJECT_HANDLE made = key();
	CHECK(flags() == 1);
	key_flags(made);
	CHECK(flags() == 1);
	/* Another session did nothing. */
	CK_SESSION_HANDLE first = session;
	session = open_session();
	CHECK(flags() == 0);
	OK(p11->C_EncryptInit(session, &ecb, made));
	CHECK(flags() == 0);
	length = 16;
	OK(p11->C_Encrypt(session, block, 16, NULL, &length));
	CHECK(flags() == 0);
	OK(p11->C_Encrypt(session, block, 16, out, &length));
	CHECK(flags() == 1);
	OK(digest(CKM_SHA256));
	EXPECT(digest(CKM_MD5), CKR_MECHANISM_INVALID);
	CHECK(flags() == 1);
	CK_SESSION_HANDLE third = open_session();
	CK_MECHANISM gcm = {CKM_AES_GCM, NULL, 0};
	OK(p11->C_MessageEncryptInit(third, &gcm, made));
	/* Under a policy that lets anything pass nothing is said to be approved. */
	policy("default");
	becomes(CKR_OK);
	wraps(CKR_OK);
	CHECK(flags() == 0);
	OK(digest(CKM_SHA256));
	CHECK(flags() == 0);
	/* Each message begins under the policy of its moment. */
	session = third;
	CHECK(flags() == 0);
	message();
	CHECK(flags() == 0);
	policy("fips");
	becomes(CKR_MECHANISM_INVALID);
	message();
	CHECK(flags() == 1);
	policy("default");
	becomes(CKR_OK);
	message();
	CHECK(flags() == 0);
	session = first;
	CHECK(flags() == 1);
	public_half();
	CHECK(flags() == 0);
	key();
	CHECK(flags() == 0);
	/* What began where anything passes is not approved when it ends elsewhere, whatever began meanwhile. */
	CK_MECHANISM md5 = {CKM_MD5, NULL, 0};
	OK(p11->C_DigestInit(session, &md5));
	policy("fips");
	session = third;
	becomes(CKR_MECHANISM_INVALID);
	session = first;
	OK(p11->C_EncryptInit(session, &ecb, made));
	length = sizeof digested;
	OK(p11->C_Digest(session, (CK_BYTE *)"abc", 3, digested, &length));
	CHECK(flags() == 0);
	length = sizeof out;
	OK(p11->C_Encrypt(session, block, 16, out, &length));
	CHECK(flags() == 1);
	OK(p11->C_Finalize(NULL));
	return 0;
}
