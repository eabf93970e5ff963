/* SPDX-License-Identifier: Apache-2.0 */
/* C_VerifySignature…: the signature comes before its data. */
#include "common.h"

static CK_SESSION_HANDLE session;
static CK_OBJECT_HANDLE public_key, private_key;
static CK_MECHANISM hashed = {CKM_ECDSA_SHA256, NULL, 0}, raw = {CKM_ECDSA, NULL, 0};
static CK_BYTE message[] = "a message in two parts", signature[64];

static void make(void)
{
	static CK_BYTE p256[] = {6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 3, 1, 7};
	CK_MECHANISM generate = {CKM_EC_KEY_PAIR_GEN, NULL, 0};
	CK_ATTRIBUTE public[] = {{CKA_EC_PARAMS, p256, sizeof(p256)}};
	CK_ULONG length = sizeof(signature);
	OK(p11->C_GenerateKeyPair(session, &generate, public, 1, NULL, 0, &public_key, &private_key));
	OK(p11->C_SignInit(session, &hashed, private_key));
	OK(p11->C_Sign(session, message, sizeof(message), signature, &length));
	CHECK(length == 64);
}

static void begin(CK_MECHANISM *mechanism)
{
	OK(p11->C_VerifySignatureInit(session, mechanism, public_key, signature, 64));
}

int main(void)
{
	session = begin_as_user();
	make();
	/* In one call, and what it began is over. */
	begin(&hashed);
	OK(p11->C_VerifySignature(session, message, sizeof(message)));
	EXPECT(p11->C_VerifySignature(session, message, sizeof(message)),
	       CKR_OPERATION_NOT_INITIALIZED);
	begin(&hashed);
	EXPECT(p11->C_VerifySignature(session, message, 3), CKR_SIGNATURE_INVALID);
	EXPECT(p11->C_VerifySignatureFinal(session), CKR_OPERATION_NOT_INITIALIZED);
	/* In parts. */
	begin(&hashed);
	OK(p11->C_VerifySignatureUpdate(session, message, 7));
	EXPECT(p11->C_VerifySignature(session, message, 7), CKR_OPERATION_ACTIVE);
	EXPECT(p11->C_VerifySignatureUpdate(session, message, 7), CKR_OPERATION_NOT_INITIALIZED);
	begin(&hashed);
	OK(p11->C_VerifySignatureUpdate(session, message, 7));
	OK(p11->C_VerifySignatureUpdate(session, message + 7, sizeof(message) - 7));
	OK(p11->C_VerifySignatureFinal(session));
	begin(&raw);
	EXPECT(p11->C_VerifySignatureUpdate(session, message, 7), CKR_FUNCTION_NOT_SUPPORTED);
	/* It is an operation beside C_Verify's, and one at a time. */
	begin(&hashed);
	EXPECT(p11->C_VerifySignatureInit(session, &hashed, public_key, signature, 64),
	       CKR_OPERATION_ACTIVE);
	OK(p11->C_VerifyInit(session, &hashed, public_key));
	OK(p11->C_Verify(session, message, sizeof(message), signature, 64));
	OK(p11->C_VerifySignature(session, message, sizeof(message)));
	begin(&hashed);
	OK(p11->C_VerifySignatureInit(session, NULL, 0, NULL, 0));
	EXPECT(p11->C_VerifySignature(session, message, 1), CKR_OPERATION_NOT_INITIALIZED);
	begin(&hashed);
	OK(p11->C_SessionCancel(session, CKF_VERIFY));
	EXPECT(p11->C_VerifySignature(session, message, 1), CKR_OPERATION_NOT_INITIALIZED);
	/* The signature is the module's own copy. */
	begin(&hashed);
	memset(signature, 0, sizeof(signature));
	OK(p11->C_VerifySignature(session, message, sizeof(message)));
	/* What is no signature, no key, no mechanism. */
	OK(p11->C_VerifySignatureInit(session, &hashed, public_key, signature, 63));
	EXPECT(p11->C_VerifySignature(session, message, 1), CKR_SIGNATURE_LEN_RANGE);
	EXPECT(p11->C_VerifySignatureInit(session, &hashed, public_key, NULL, 64), CKR_ARGUMENTS_BAD);
	EXPECT(p11->C_VerifySignatureInit(session, &hashed, private_key, signature, 64),
	       CKR_KEY_FUNCTION_NOT_PERMITTED);
	EXPECT(p11->C_VerifySignatureInit(session, &hashed, 4711, signature, 64), CKR_KEY_HANDLE_INVALID);
	OK(p11->C_Finalize(NULL));
	return 0;
}
