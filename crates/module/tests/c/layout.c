// SPDX-License-Identifier: Apache-2.0
/* Prints sizes and places of fields, by our header or by that of p11-kit: both must say the same. What
 * that one has is 2.40; the rest is compared with the bindings when the module is compiled. */
#include <stddef.h>
#include <stdio.h>
#ifdef WITH_P11_KIT
#include <p11-kit/pkcs11.h>
#else
#include <metaslot/pkcs11.h>
#endif

#define SIZE(type) printf("%s %zu\n", #type, sizeof(type))
#define FIELD(type, field) printf("%s.%s %zu\n", #type, #field, offsetof(type, field))

int main(void)
{
	SIZE(CK_ULONG);
	SIZE(CK_BBOOL);
	SIZE(CK_VERSION);
	SIZE(CK_INFO);
	FIELD(CK_INFO, flags);
	FIELD(CK_INFO, libraryVersion);
	SIZE(CK_SLOT_INFO);
	FIELD(CK_SLOT_INFO, flags);
	FIELD(CK_SLOT_INFO, firmwareVersion);
	SIZE(CK_TOKEN_INFO);
	FIELD(CK_TOKEN_INFO, flags);
	FIELD(CK_TOKEN_INFO, ulFreePrivateMemory);
	FIELD(CK_TOKEN_INFO, utcTime);
	SIZE(CK_SESSION_INFO);
	FIELD(CK_SESSION_INFO, ulDeviceError);
	SIZE(CK_ATTRIBUTE);
	FIELD(CK_ATTRIBUTE, type);
	FIELD(CK_ATTRIBUTE, pValue);
	FIELD(CK_ATTRIBUTE, ulValueLen);
	SIZE(CK_DATE);
	SIZE(CK_MECHANISM);
	FIELD(CK_MECHANISM, pParameter);
	FIELD(CK_MECHANISM, ulParameterLen);
	SIZE(CK_MECHANISM_INFO);
	SIZE(CK_C_INITIALIZE_ARGS);
	FIELD(CK_C_INITIALIZE_ARGS, flags);
	FIELD(CK_C_INITIALIZE_ARGS, pReserved);
	SIZE(CK_RSA_PKCS_PSS_PARAMS);
	SIZE(CK_RSA_PKCS_OAEP_PARAMS);
	FIELD(CK_RSA_PKCS_OAEP_PARAMS, pSourceData);
	SIZE(CK_ECDH1_DERIVE_PARAMS);
	FIELD(CK_ECDH1_DERIVE_PARAMS, pPublicData);
	SIZE(CK_AES_CTR_PARAMS);
	SIZE(CK_GCM_PARAMS);
	FIELD(CK_GCM_PARAMS, pAAD);
	FIELD(CK_GCM_PARAMS, ulTagBits);
	SIZE(CK_FUNCTION_LIST);
	FIELD(CK_FUNCTION_LIST, C_Initialize);
	FIELD(CK_FUNCTION_LIST, C_GenerateRandom);
	FIELD(CK_FUNCTION_LIST, C_WaitForSlotEvent);
	printf("%lx %lx %lx %lx %lx\n", CKR_FUNCTION_NOT_SUPPORTED, CKM_AES_GCM, CKA_ALLOWED_MECHANISMS,
	       CKF_EC_UNCOMPRESS, CKR_CRYPTOKI_NOT_INITIALIZED);
	return 0;
}
