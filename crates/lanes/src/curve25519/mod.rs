// SPDX-License-Identifier: Apache-2.0
//! X25519 and Ed25519.
