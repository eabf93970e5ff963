// SPDX-License-Identifier: Apache-2.0
// A key of another module's token is used before a fork, in the child and afterwards in the parent. Arguments: the module, a
// token's label, its PIN, and "there" where the key is there already.
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <metaslot/pkcs11.h>

static CK_FUNCTION_LIST *f;

#define CHECK(what) check(#what, what)

static void check(const char *what, CK_RV rv)
{
    if (rv != CKR_OK) {
        fprintf(stderr, "%d: %s: 0x%lx\n", getpid(), what, rv);
        _exit(1);
    }
}

static CK_SLOT_ID slot_of(const char *label)
{
    CK_SLOT_ID slots[16];
    CK_ULONG count = 16;
    CHECK(f->C_GetSlotList(CK_TRUE, slots, &count));
    for (CK_ULONG at = 0; at < count; at++) {
        CK_TOKEN_INFO info;
        CHECK(f->C_GetTokenInfo(slots[at], &info));
        if (memcmp(info.label, label, strlen(label)) == 0)
            return slots[at];
    }
    fprintf(stderr, "no token %s\n", label);
    _exit(1);
}

static CK_SESSION_HANDLE logged_in(const char *label, const char *pin)
{
    CK_SESSION_HANDLE session;
    CHECK(f->C_OpenSession(slot_of(label), CKF_SERIAL_SESSION | CKF_RW_SESSION, NULL, NULL, &session));
    CK_RV rv = f->C_Login(session, CKU_USER, (CK_UTF8CHAR *) "9999", 4);
    if (rv != CKR_PIN_INCORRECT) {
        fprintf(stderr, "a wrong PIN gave 0x%lx\n", rv);
        _exit(1);
    }
    CHECK(f->C_Login(session, CKU_USER, (CK_UTF8CHAR *) pin, strlen(pin)));
    return session;
}

static void sign(CK_SESSION_HANDLE session)
{
    CK_OBJECT_CLASS class = CKO_PRIVATE_KEY;
    CK_ATTRIBUTE template[] = { { CKA_CLASS, &class, sizeof class } };
    CK_OBJECT_HANDLE key;
    CK_ULONG count;
    CHECK(f->C_FindObjectsInit(session, template, 1));
    CHECK(f->C_FindObjects(session, &key, 1, &count));
    CHECK(f->C_FindObjectsFinal(session));
    if (count != 1) {
        fprintf(stderr, "no key\n");
        _exit(1);
    }
    CK_MECHANISM mechanism = { CKM_RSA_PKCS, NULL, 0 };
    CK_BYTE signature[256];
    CK_ULONG length = sizeof signature;
    CHECK(f->C_SignInit(session, &mechanism, key));
    CHECK(f->C_Sign(session, (CK_BYTE *) "data", 4, signature, &length));
}

static void make(CK_SESSION_HANDLE session)
{
    CK_BBOOL yes = CK_TRUE;
    CK_ULONG bits = 2048;
    CK_BYTE exponent[] = { 1, 0, 1 };
    CK_MECHANISM mechanism = { CKM_RSA_PKCS_KEY_PAIR_GEN, NULL, 0 };
    CK_ATTRIBUTE public[] = {
        { CKA_TOKEN, &yes, 1 },
        { CKA_MODULUS_BITS, &bits, sizeof bits },
        { CKA_PUBLIC_EXPONENT, exponent, sizeof exponent },
    };
    CK_ATTRIBUTE private[] = { { CKA_TOKEN, &yes, 1 }, { CKA_SIGN, &yes, 1 } };
    CK_OBJECT_HANDLE keys[2];
    CHECK(f->C_GenerateKeyPair(session, &mechanism, public, 3, private, 2, &keys[0], &keys[1]));
}

// FIPS 180-4's example.
static const CK_BYTE abc[] = {
    0xba, 0x78, 0x16, 0xbf, 0x8f, 0x01, 0xcf, 0xea, 0x41, 0x41, 0x40, 0xde, 0x5d, 0xae, 0x22, 0x23,
    0xb0, 0x03, 0x61, 0xa3, 0x96, 0x17, 0x7a, 0x9c, 0xb4, 0x10, 0xff, 0x61, 0xf2, 0x00, 0x15, 0xad,
};

static void begin_digest(CK_SESSION_HANDLE session)
{
    CK_MECHANISM mechanism = { CKM_SHA256, NULL, 0 };
    CHECK(f->C_DigestInit(session, &mechanism));
    CHECK(f->C_DigestUpdate(session, (CK_BYTE *) "a", 1));
}

static void end_digest(CK_SESSION_HANDLE session)
{
    CK_BYTE digest[sizeof abc];
    CK_ULONG length = sizeof digest;
    CHECK(f->C_DigestUpdate(session, (CK_BYTE *) "bc", 2));
    CHECK(f->C_DigestFinal(session, digest, &length));
    if (memcmp(digest, abc, sizeof abc) != 0) {
        fprintf(stderr, "a wrong digest\n");
        _exit(1);
    }
}

int main(int argc, char **argv)
{
    if (argc != 4 && argc != 5)
        return 2;
    void *library = dlopen(argv[1], RTLD_NOW);
    if (!library) {
        fprintf(stderr, "%s\n", dlerror());
        return 1;
    }
    CK_C_GetFunctionList list = (CK_C_GetFunctionList) dlsym(library, "C_GetFunctionList");
    CHECK(list(&f));
    CHECK(f->C_Initialize(NULL));
    CK_SESSION_HANDLE session = logged_in(argv[2], argv[3]);
    CK_TOKEN_INFO info;
    CHECK(f->C_GetTokenInfo(slot_of(argv[2]), &info));
    // A pool has its key.
    if (argc == 4 && !(info.flags & CKF_WRITE_PROTECTED))
        make(session);
    sign(session);
    begin_digest(session);
    pid_t child = fork();
    if (child == 0) {
        alarm(60);
        CHECK(f->C_Initialize(NULL));
        CK_SESSION_HANDLE mine = logged_in(argv[2], argv[3]);
        sign(mine);
        begin_digest(mine);
        end_digest(mine);
        CHECK(f->C_Finalize(NULL));
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0) {
        fprintf(stderr, "the child ended with %d\n", status);
        return 1;
    }
    sign(session);
    end_digest(session);
    CHECK(f->C_Finalize(NULL));
    puts("parent and child have signed");
    return 0;
}
