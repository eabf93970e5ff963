// SPDX-License-Identifier: Apache-2.0
//! Table of what is done for each call of the protocol, ours among them; numbers and signatures are in the client's table of the same calls.

use super::connection::Work;
use super::{general, keys, message, objects, sessions};
use metaslot_ck::Function;
use metaslot_engine::{Engine, OperationKind};
use metaslot_spi::provider::Direction::{Backward, Forward};

/// What is done for a call; `None` where it is not served.
pub(super) fn work(function: Function) -> Option<Work> {
    WORK.iter().find(|(one, _)| *one == function).map(|(_, work)| *work)
}

const WORK: &[(Function, Work)] = &[
    (Function::Initialize, general::initialize),
    (Function::Finalize, general::finalize),
    (Function::GetInfo, general::info),
    (Function::GetSlotList, general::slot_list),
    (Function::GetSlotInfo, general::slot_info),
    (Function::GetTokenInfo, general::token_info),
    (Function::GetMechanismList, general::mechanism_list),
    (Function::GetMechanismInfo, general::mechanism_info),
    (Function::InitToken, general::init_token),
    (Function::WaitForSlotEvent, general::slot_event),
    (Function::OpenSession, sessions::open),
    (Function::CloseSession, sessions::close),
    (Function::CloseAllSessions, sessions::close_all),
    (Function::GetSessionInfo, sessions::info),
    (Function::SessionCancel, sessions::cancel),
    (Function::GetOperationState, sessions::operation_state),
    (Function::SetOperationState, sessions::set_operation_state),
    (Function::InitPIN, sessions::init_pin),
    (Function::SetPIN, sessions::set_pin),
    (Function::Login, sessions::login),
    (Function::LoginUser, sessions::login_user),
    (Function::Logout, |asked| asked.alone(Engine::logout)),
    (Function::CreateObject, objects::create),
    (Function::CopyObject, objects::copy),
    (Function::DestroyObject, objects::destroy),
    (Function::GetObjectSize, objects::size),
    (Function::GetAttributeValue, objects::attributes),
    (Function::SetAttributeValue, objects::set_attributes),
    (Function::FindObjectsInit, objects::find_init),
    (Function::FindObjects, objects::find),
    (Function::FindObjectsFinal, objects::find_final),
    (Function::EncryptInit, |asked| {
        asked.begin(|engine, session, mechanism, params, key| {
            engine.cipher_init(Forward, session, mechanism, params, key)
        })
    }),
    (Function::Encrypt, |asked| {
        asked.transform(|engine, session, data, out| engine.cipher(Forward, session, data, out))
    }),
    (Function::EncryptUpdate, |asked| {
        asked.part(|engine, session, part, out| engine.cipher_update(Forward, session, part, out))
    }),
    (Function::EncryptFinal, |asked| {
        asked.finish(|engine, session, out| engine.cipher_final(Forward, session, out))
    }),
    (Function::DecryptInit, |asked| {
        asked.begin(|engine, session, mechanism, params, key| {
            engine.cipher_init(Backward, session, mechanism, params, key)
        })
    }),
    (Function::Decrypt, |asked| {
        asked.transform(|engine, session, data, out| engine.cipher(Backward, session, data, out))
    }),
    (Function::DecryptUpdate, |asked| {
        asked.part(|engine, session, part, out| engine.cipher_update(Backward, session, part, out))
    }),
    (Function::DecryptFinal, |asked| {
        asked.finish(|engine, session, out| engine.cipher_final(Backward, session, out))
    }),
    (Function::DigestInit, |mut asked| {
        let (session, mechanism) = (asked.session()?, asked.mechanism()?);
        asked.request.end()?;
        match mechanism {
            Some(mechanism) => asked.connection.engine.digest_init(session, mechanism.alone()?),
            None => asked.cancel(session),
        }
    }),
    (Function::Digest, |asked| asked.transform(Engine::digest)),
    (Function::DigestUpdate, |asked| asked.update(Engine::digest_update)),
    (Function::DigestKey, keys::digest),
    (Function::DigestFinal, |asked| asked.finish(Engine::digest_final)),
    (Function::SignInit, |asked| asked.begin(Engine::sign_init)),
    (Function::Sign, |asked| asked.transform(Engine::sign)),
    (Function::SignUpdate, |asked| asked.update(Engine::sign_update)),
    (Function::SignFinal, |asked| asked.finish(Engine::sign_final)),
    (Function::SignRecoverInit, |asked| asked.begin(Engine::sign_recover_init)),
    (Function::SignRecover, |asked| asked.transform(Engine::sign_recover)),
    (Function::VerifyInit, |asked| asked.begin(Engine::verify_init)),
    (Function::Verify, |asked| asked.check(Engine::verify)),
    (Function::VerifyUpdate, |asked| asked.update(Engine::verify_update)),
    (Function::VerifyFinal, |asked| asked.update(Engine::verify_final)),
    (Function::VerifyRecoverInit, |asked| asked.begin(Engine::verify_recover_init)),
    (Function::VerifyRecover, |asked| asked.transform(Engine::verify_recover)),
    (Function::DigestEncryptUpdate, |asked| asked.both()),
    (Function::DecryptDigestUpdate, |asked| asked.both()),
    (Function::SignEncryptUpdate, |asked| asked.both()),
    (Function::DecryptVerifyUpdate, |asked| asked.both()),
    (Function::GenerateKey, keys::generate),
    (Function::GenerateKeyPair, keys::generate_pair),
    (Function::WrapKey, keys::wrap),
    (Function::UnwrapKey, keys::unwrap),
    (Function::DeriveKey, keys::derive),
    (Function::EncapsulateKey, keys::encapsulate),
    (Function::DecapsulateKey, keys::decapsulate),
    (Function::SeedRandom, |asked| asked.update(Engine::seed_random)),
    (Function::GenerateRandom, sessions::random),
    (Function::MessageSignInit, |asked| {
        asked.begin(|engine, session, mechanism, params, key| {
            let with = (mechanism, params);
            engine.signature_init(OperationKind::MessageSign, session, with, key)
        })
    }),
    (Function::SignMessage, message::sign),
    (Function::SignMessageBegin, message::begin),
    (Function::SignMessageNext, message::sign_next),
    (Function::MessageSignFinal, |asked| {
        asked.alone(|engine, session| engine.message_final(session, OperationKind::MessageSign))
    }),
    (Function::MessageVerifyInit, |asked| {
        asked.begin(|engine, session, mechanism, params, key| {
            let with = (mechanism, params);
            engine.signature_init(OperationKind::MessageVerify, session, with, key)
        })
    }),
    (Function::VerifyMessage, message::verify),
    (Function::VerifyMessageBegin, message::begin),
    (Function::VerifyMessageNext, message::verify_next),
    (Function::MessageVerifyFinal, |asked| {
        asked.alone(|engine, session| engine.message_final(session, OperationKind::MessageVerify))
    }),
];

#[cfg(test)]
mod tests {
    use super::*;
    use metaslot_client::protocol::Call;

    #[test]
    fn each_call_is_served_but_ciphers_of_messages() {
        let missing: Vec<_> = Call::all()
            .filter(|call| work(call.function).is_none())
            .map(|call| call.number)
            .collect();
        assert_eq!(missing, (68..=77).collect::<Vec<_>>());
    }
}
