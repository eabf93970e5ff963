/* SPDX-License-Identifier: Apache-2.0 */
/* PINs through the C ABI: how short one may be, and what a login in a pause is told. The
 * configuration says `pin_min = 8`. */
#include "common.h"

static CK_UTF8CHAR label[33] = "pins                            ";
static CK_UTF8CHAR right[] = "23456789", wrong[] = "99999999";

static CK_ULONG shortest(void)
{
	CK_TOKEN_INFO info;
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK(info.ulMaxPinLen == 255);
	return info.ulMinPinLen;
}

static METASLOT_FUNCTION_LIST *vendor(void)
{
	CK_INTERFACE *interface;
	OK(p11->C_GetInterface((CK_UTF8CHAR *)METASLOT_INTERFACE, NULL, &interface, 0));
	return interface->pFunctionList;
}

static void said(const char *wanted)
{
	CK_UTF8CHAR text[512];
	CK_ULONG length = sizeof text - 1;
	OK(vendor()->LastError(text, &length));
	text[length] = 0;
	if (strstr((char *)text, wanted) == NULL) FAIL("\"%s\" is not in \"%s\"", wanted, text);
}

static void short_pins_are_refused(CK_SESSION_HANDLE *session)
{
	CHECK(shortest() == 8);
	EXPECT(p11->C_InitToken(0, so_pin, 7, label), CKR_PIN_LEN_RANGE);
	said("a PIN of this token has 8 to 255 bytes");
	OK(p11->C_InitToken(0, so_pin, 8, label));
	CHECK(shortest() == 8);
	*session = open_session();
	OK(p11->C_Login(*session, CKU_SO, so_pin, 8));
	EXPECT(p11->C_InitPIN(*session, right, 7), CKR_PIN_LEN_RANGE);
	OK(p11->C_InitPIN(*session, right, 8));
	OK(p11->C_Logout(*session));
	EXPECT(p11->C_SetPIN(*session, right, 8, wrong, 7), CKR_PIN_LEN_RANGE);
}

static METASLOT_PIN_STATUS user(void)
{
	METASLOT_TOKEN_STATUS status;
	OK(vendor()->TokenStatus(0, &status));
	return status.user;
}

/* A right PIN must not be called wrong, and an attempt that is not made must not count. */
static void a_login_in_a_pause_is_told_that_the_pin_is_locked(CK_SESSION_HANDLE session)
{
	CK_TOKEN_INFO info;
	CK_RV rv = CKR_PIN_INCORRECT;
	/* Each pause is twice as long as the one before: on a slow machine more attempts are taken. */
	for (int at = 0; at < 9 && rv == CKR_PIN_INCORRECT; at++)
		rv = p11->C_Login(session, CKU_USER, wrong, 8);
	EXPECT(rv, CKR_PIN_LOCKED);
	said("no PIN is taken before");
	CHECK(user().ulFailures >= 3 && user().ulLeft == 10 - user().ulFailures);
	CHECK(user().ulRetryAt > 0);
	OK(p11->C_GetTokenInfo(0, &info));
	CHECK((info.flags & CKF_USER_PIN_COUNT_LOW) != 0);
	CHECK((info.flags & CKF_USER_PIN_LOCKED) == 0);
}

int main(void)
{
	CK_SESSION_HANDLE session;
	load();
	OK(p11->C_Initialize(NULL));
	short_pins_are_refused(&session);
	a_login_in_a_pause_is_told_that_the_pin_is_locked(session);
	OK(p11->C_Finalize(NULL));
	return 0;
}
