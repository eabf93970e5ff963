/* SPDX-License-Identifier: Apache-2.0 */
/* What ends an operation (PKCS#11 3.2 §5.8 to §5.17): every failing call but a short buffer, also one whose arguments are
 * wrong, and a call that does everything at once after the first part; and *Init without a mechanism. */
#include "common.h"

enum kind { DIGEST, ENCRYPT, DECRYPT, SIGN, VERIFY, SIGN_RECOVER, VERIFY_RECOVER, KINDS };

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE aes, hmac, rsa_public, rsa_private;
static CK_BYTE counter_block[16], data[64], out[512];
static CK_AES_CTR_PARAMS counter = {128, {0}};
static CK_MECHANISM digest_mechanism = {CKM_SHA256, NULL, 0}, cipher = {CKM_AES_CTR, &counter, sizeof counter},
		    mac = {CKM_SHA256_HMAC, NULL, 0}, recover = {CKM_RSA_PKCS, NULL, 0};
static CK_ULONG length;

static CK_RV begin(enum kind kind, int cancel)
{
	switch (kind) {
	case DIGEST: return p11->C_DigestInit(session, cancel ? NULL : &digest_mechanism);
	case ENCRYPT: return p11->C_EncryptInit(session, cancel ? NULL : &cipher, aes);
	case DECRYPT: return p11->C_DecryptInit(session, cancel ? NULL : &cipher, aes);
	case SIGN: return p11->C_SignInit(session, cancel ? NULL : &mac, hmac);
	case VERIFY: return p11->C_VerifyInit(session, cancel ? NULL : &mac, hmac);
	case SIGN_RECOVER: return p11->C_SignRecoverInit(session, cancel ? NULL : &recover, rsa_private);
	default: return p11->C_VerifyRecoverInit(session, cancel ? NULL : &recover, rsa_public);
	}
}

/* Takes data, where the kind has parts. */
static CK_RV part(enum kind kind)
{
	length = sizeof out;
	switch (kind) {
	case DIGEST: return p11->C_DigestUpdate(session, data, 16);
	case ENCRYPT: return p11->C_EncryptUpdate(session, data, 16, out, &length);
	case DECRYPT: return p11->C_DecryptUpdate(session, data, 16, out, &length);
	case SIGN: return p11->C_SignUpdate(session, data, 16);
	case VERIFY: return p11->C_VerifyUpdate(session, data, 16);
	default: return CKR_OK;
	}
}

/* Whether the operation is there: a call that changes nothing where it is. */
static int is_active(enum kind kind)
{
	CK_RV rv = begin(kind, 0);
	if (rv == CKR_OPERATION_ACTIVE) return 1;
	if (rv != CKR_OK) FAIL("kind %d: init gives 0x%lx", kind, rv);
	OK(begin(kind, 1));
	return 0;
}

/* One failing call of one kind, and what it must answer (0: any failure). */
struct ending {
	const char *name;
	enum kind kind;
	int after_part;
	CK_RV (*call)(void);
	CK_RV expected;
};

#define CALL(name, expression) static CK_RV name(void) { length = sizeof out; return p11->expression; }
CALL(digest_no_place, C_Digest(session, data, 16, out, NULL))
CALL(digest_no_data, C_Digest(session, NULL, 5, out, &length))
CALL(digest_once, C_Digest(session, data, 16, out, &length))
CALL(digest_update_no_data, C_DigestUpdate(session, NULL, 5))
CALL(digest_final_no_place, C_DigestFinal(session, out, NULL))
CALL(encrypt_no_place, C_Encrypt(session, data, 16, out, NULL))
CALL(encrypt_no_data, C_Encrypt(session, NULL, 5, out, &length))
CALL(encrypt_once, C_Encrypt(session, data, 16, out, &length))
CALL(encrypt_update_no_data, C_EncryptUpdate(session, NULL, 5, out, &length))
CALL(encrypt_update_no_place, C_EncryptUpdate(session, data, 16, out, NULL))
CALL(encrypt_final_no_place, C_EncryptFinal(session, out, NULL))
CALL(decrypt_no_place, C_Decrypt(session, data, 16, out, NULL))
CALL(decrypt_no_data, C_Decrypt(session, NULL, 5, out, &length))
CALL(decrypt_once, C_Decrypt(session, data, 16, out, &length))
CALL(decrypt_update_no_data, C_DecryptUpdate(session, NULL, 5, out, &length))
CALL(decrypt_update_no_place, C_DecryptUpdate(session, data, 16, out, NULL))
CALL(decrypt_final_no_place, C_DecryptFinal(session, out, NULL))
CALL(sign_no_place, C_Sign(session, data, 16, out, NULL))
CALL(sign_no_data, C_Sign(session, NULL, 5, out, &length))
CALL(sign_once, C_Sign(session, data, 16, out, &length))
CALL(sign_update_no_data, C_SignUpdate(session, NULL, 5))
CALL(sign_final_no_place, C_SignFinal(session, out, NULL))
CALL(verify_no_data, C_Verify(session, NULL, 5, out, 32))
CALL(verify_no_signature, C_Verify(session, data, 16, NULL, 32))
CALL(verify_once, C_Verify(session, data, 16, out, 32))
CALL(verify_wrong, C_Verify(session, data, 16, data, 32))
CALL(verify_update_no_data, C_VerifyUpdate(session, NULL, 5))
CALL(verify_final_no_signature, C_VerifyFinal(session, NULL, 32))
CALL(verify_final_wrong, C_VerifyFinal(session, data, 32))
CALL(sign_recover_no_place, C_SignRecover(session, data, 16, out, NULL))
CALL(sign_recover_no_data, C_SignRecover(session, NULL, 5, out, &length))
CALL(sign_recover_too_long, C_SignRecover(session, out, 512, out, &length))
CALL(verify_recover_no_place, C_VerifyRecover(session, data, 16, out, NULL))
CALL(verify_recover_no_data, C_VerifyRecover(session, NULL, 5, out, &length))
CALL(verify_recover_wrong, C_VerifyRecover(session, data, 16, out, &length))

#define ROW(name, kind, after, expected) {#name, kind, after, name, expected}
static const struct ending endings[] = {
	ROW(digest_no_place, DIGEST, 0, CKR_ARGUMENTS_BAD),
	ROW(digest_no_data, DIGEST, 0, CKR_ARGUMENTS_BAD),
	ROW(digest_once, DIGEST, 1, CKR_OPERATION_ACTIVE),
	ROW(digest_update_no_data, DIGEST, 0, CKR_ARGUMENTS_BAD),
	ROW(digest_update_no_data, DIGEST, 1, CKR_ARGUMENTS_BAD),
	ROW(digest_final_no_place, DIGEST, 1, CKR_ARGUMENTS_BAD),
	ROW(encrypt_no_place, ENCRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(encrypt_no_data, ENCRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(encrypt_once, ENCRYPT, 1, CKR_OPERATION_ACTIVE),
	ROW(encrypt_update_no_data, ENCRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(encrypt_update_no_place, ENCRYPT, 1, CKR_ARGUMENTS_BAD),
	ROW(encrypt_final_no_place, ENCRYPT, 1, CKR_ARGUMENTS_BAD),
	ROW(decrypt_no_place, DECRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(decrypt_no_data, DECRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(decrypt_once, DECRYPT, 1, CKR_OPERATION_ACTIVE),
	ROW(decrypt_update_no_data, DECRYPT, 0, CKR_ARGUMENTS_BAD),
	ROW(decrypt_update_no_place, DECRYPT, 1, CKR_ARGUMENTS_BAD),
	ROW(decrypt_final_no_place, DECRYPT, 1, CKR_ARGUMENTS_BAD),
	ROW(sign_no_place, SIGN, 0, CKR_ARGUMENTS_BAD),
	ROW(sign_no_data, SIGN, 0, CKR_ARGUMENTS_BAD),
	ROW(sign_once, SIGN, 1, CKR_OPERATION_ACTIVE),
	ROW(sign_update_no_data, SIGN, 1, CKR_ARGUMENTS_BAD),
	ROW(sign_final_no_place, SIGN, 1, CKR_ARGUMENTS_BAD),
	ROW(verify_no_data, VERIFY, 0, CKR_ARGUMENTS_BAD),
	ROW(verify_no_signature, VERIFY, 0, CKR_ARGUMENTS_BAD),
	ROW(verify_once, VERIFY, 1, CKR_OPERATION_ACTIVE),
	ROW(verify_wrong, VERIFY, 0, CKR_SIGNATURE_INVALID),
	ROW(verify_update_no_data, VERIFY, 1, CKR_ARGUMENTS_BAD),
	ROW(verify_final_no_signature, VERIFY, 1, CKR_ARGUMENTS_BAD),
	ROW(verify_final_wrong, VERIFY, 1, CKR_SIGNATURE_INVALID),
	ROW(sign_recover_no_place, SIGN_RECOVER, 0, CKR_ARGUMENTS_BAD),
	ROW(sign_recover_no_data, SIGN_RECOVER, 0, CKR_ARGUMENTS_BAD),
	ROW(sign_recover_too_long, SIGN_RECOVER, 0, CKR_DATA_LEN_RANGE),
	ROW(verify_recover_no_place, VERIFY_RECOVER, 0, CKR_ARGUMENTS_BAD),
	ROW(verify_recover_no_data, VERIFY_RECOVER, 0, CKR_ARGUMENTS_BAD),
	ROW(verify_recover_wrong, VERIFY_RECOVER, 0, 0),
};

static void failures_end(void)
{
	for (size_t at = 0; at < sizeof endings / sizeof *endings; at++) {
		const struct ending *row = &endings[at];
		CK_RV rv;
		OK(begin(row->kind, 0));
		if (row->after_part) OK(part(row->kind));
		rv = row->call();
		if (rv == CKR_OK || (row->expected != 0 && rv != row->expected))
			FAIL("%s: 0x%lx", row->name, rv);
		if (is_active(row->kind)) FAIL("%s: the operation goes on", row->name);
	}
}

/* A short buffer and a question for the length leave everything as it is. */
static void short_buffers_do_not(void)
{
	CK_ULONG small = 1;
	OK(begin(SIGN, 0));
	OK(p11->C_Sign(session, data, 16, NULL, &length));
	EXPECT(p11->C_Sign(session, data, 16, out, &small), CKR_BUFFER_TOO_SMALL);
	CHECK(is_active(SIGN));
	length = sizeof out;
	OK(p11->C_Sign(session, data, 16, out, &length));
	CHECK(!is_active(SIGN));
}

/* PKCS#11 3.2 §5.8.1 and its like: without a mechanism an active operation is cancelled. */
static void nothing_cancels(void)
{
	for (int kind = DIGEST; kind < KINDS; kind++) {
		EXPECT(begin(kind, 1), CKR_ARGUMENTS_BAD);
		OK(begin(kind, 0));
		OK(part(kind));
		OK(begin(kind, 1));
		CHECK(!is_active(kind));
	}
}

/* Both halves of a call that does two things at once end when its arguments are wrong. */
static void dual_calls_end_both(void)
{
	length = sizeof out;
	OK(begin(DIGEST, 0));
	OK(begin(ENCRYPT, 0));
	EXPECT(p11->C_DigestEncryptUpdate(session, NULL, 5, out, &length), CKR_ARGUMENTS_BAD);
	CHECK(!is_active(DIGEST) && !is_active(ENCRYPT));
}

int main(void)
{
	CK_BYTE value[32] = {1};
	CK_ULONG bits = 2048;
	CK_ATTRIBUTE size = {CKA_MODULUS_BITS, &bits, sizeof bits};
	CK_MECHANISM generate = {CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0};
	memcpy(counter.cb, counter_block, 16);
	load();
	OK(p11->C_Initialize(NULL));
	make_token();
	session = open_session();
	aes = import_key(session, CKK_AES, value, 32);
	hmac = import_key(session, CKK_GENERIC_SECRET, value, 32);
	OK(p11->C_GenerateKeyPair(session, &generate, &size, 1, NULL, 0, &rsa_public, &rsa_private));
	failures_end();
	short_buffers_do_not();
	nothing_cancels();
	dual_calls_end_both();
	OK(p11->C_Finalize(NULL));
	return 0;
}
