// SPDX-License-Identifier: Apache-2.0

// Package openbao names what is tested, so that `go mod tidy` keeps it.
package openbao

import _ "github.com/openbao/go-kms-wrapping/wrappers/pkcs11/v2"
