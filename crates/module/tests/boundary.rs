// SPDX-License-Identifier: Apache-2.0
//! The C boundary: programs in C, compiled with our header, run against the built `libmetaslot.so`.
//!
//! A program passes when it ends with 0, in time, without a byte on standard error and, unless it
//! makes a token, without a file in its home.

mod harness;

use harness::{Home, module, program, program_with};
use metaslot_counters::{Event, read};
use metaslot_engine::MAX_SLOTS;
use metaslot_lanes::cpu::{self, Cpu};
use std::collections::BTreeMap;
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::SeqCst;

#[test]
fn every_end_of_process_thread_and_library_is_survived_a_hundred_times() {
    let lifecycle = program("lifecycle");
    harness::shared_library("destructor");
    let variants = [
        "atexit-before",
        "atexit-after",
        "finalize-atexit-before",
        "finalize-atexit-after",
        "library-before",
        "library-after",
        "exit-in-thread",
        "return-while-working",
        "finalize-while-working",
        "finalize-and-initialize-while-working",
        "finalize-in-thread-return-in-main",
        "dlclose-before-finalize",
        "dlclose-after-finalize",
        "dlclose-while-working",
        "load-again",
        "finalize-twice",
        "fork-under-four-threads",
        "threads-end",
        "thread-destructor-before",
        "wait-for-slot-event",
    ];
    for variant in variants {
        let home = Home::empty(variant);
        for _ in 0..harness::rounds() {
            home.run(&lifecycle, &[variant]);
        }
        home.assert_empty();
    }
}

#[test]
fn a_changed_configuration_is_taken_over_and_a_wrong_one_is_not() {
    let home = Home::new("reload");
    let file = home.path().join("metaslot.toml");
    let environment =
        [("METASLOT_CONF", file.as_os_str()), ("CONFIGURATION", home.path().as_os_str())];
    home.run_with(&program("reload"), &[], &environment);
    let log = fs::read_to_string(home.path().join("audit.log")).expect("there is a log");
    let has = |event: &str, reason: &str| {
        log.lines().any(|line| {
            line.contains(&format!("\"event\":\"{event}\",\"file\":{file:?}"))
                && line.contains(reason)
        })
    };
    assert!(has("configured", "metaslot.toml\"}"), "{log}");
    assert!(has("not-configured", "line 2: there is no setting \\\"colour\\\""), "{log}");
    assert!(has("not-configured", "cannot be read"), "{log}");
}

#[test]
fn drop_ins_add_to_the_configuration_that_they_stand_beside() {
    Home::empty("drop-ins").run(&program("drop_ins"), &[]);
}

#[test]
fn the_error_log_says_what_a_code_does_not_and_no_secret() {
    let program = program("error_log");
    let run = |name: &str, log: Option<&str>, level: &str, stderr: Option<&str>| {
        let home = Home::new(name);
        let paths = [log, stderr].map(|file| file.map(|file| home.path().join(file)));
        let log = paths[0].as_deref().unwrap_or_else(|| Path::new("stderr"));
        let variables = [("METASLOT_LOG", log.as_os_str()), ("METASLOT_LOG_LEVEL", level.as_ref())];
        let stderr = paths[1].as_deref().map(|path| path.to_str().expect("text"));
        home.run_with(&program, &Vec::from_iter(stderr), &variables);
        let written = paths.iter().flatten().map(|path| fs::read_to_string(path).expect("a log"));
        written.collect::<String>()
    };
    let pin = "C_Login: CKR_PIN_INCORRECT: ";
    let errors = run("error-log", Some("log"), "error", None);
    assert_eq!(errors.lines().count(), 1, "{errors}");
    assert!(errors.contains(pin) && errors.contains(" error_log["), "{errors}");
    assert!(!errors.contains("not-the-pin"), "{errors}");
    let all = run("error-log-all", Some("log"), "all", None);
    assert!(all.contains(pin), "{all}");
    assert!(all.contains("C_SignFinal: CKR_OPERATION_NOT_INITIALIZED\n"), "{all}");
    assert!(run("error-log-stderr", None, "error", Some("errors")).contains(pin));
    let wrong = run("error-log-wrong", None, "loud", Some("errors"));
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn a_thread_that_is_cancelled_leaves_the_store_whole() {
    let lifecycle = program_with("lifecycle", "cancelled", &[]);
    let home = Home::new("cancelled");
    for _ in 0..harness::rounds() {
        home.run(&lifecycle, &["cancel-while-writing"]);
    }
    // A store that a group shares has no mapped page: each use of a key reads a file.
    for name in ["token.db", "token.db.gen"] {
        let file = home.path().join(".local/share/metaslot").join(name);
        fs::set_permissions(&file, Permissions::from_mode(0o660)).expect("the file is ours");
    }
    let token = home.path().join(".local/share/metaslot/token.db");
    let [counters, log, file] =
        ["counters", "audit.log", "metaslot.toml"].map(|name| home.path().join(name));
    fs::create_dir(&counters).expect("it is not there");
    let token = format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
    let settings = format!("counters = {counters:?}\naudit = {log:?}\n{token}");
    fs::write(&file, settings).expect("the file can be written");
    let variables = [("METASLOT_CONF", file.as_os_str())];
    home.run_with(&lifecycle, &["cancel-while-using-a-key"], &variables);
    let log = fs::read_to_string(log).expect("there is a log");
    assert_eq!(log.matches("\"event\":\"generated\"").count(), 1, "{log}");
}

#[test]
fn no_argument_crashes_any_function() {
    harness::write_function_table();
    let said = Home::new("arguments").run(&program("arguments"), &[]);
    println!("{said}");
    let functions = metaslot_ck::Function::ALL.len();
    assert!(said.contains(&format!("of {functions} functions")), "{said}");
}

#[test]
fn a_forked_child_begins_anew_and_the_parent_goes_on() {
    Home::new("fork").run(&program("fork"), &[]);
}

#[test]
fn a_forked_child_keeps_its_parents_configuration_though_the_environment_is_cleared() {
    let home = Home::empty("fork-environment");
    let [three, two] = [3, 2].map(|tokens| {
        let section = |token| format!("[[token]]\npath = \"/nowhere/{token}.db\"\n");
        let file = home.path().join(format!("{tokens}.toml"));
        let text = "counters = false\n".to_owned();
        fs::write(&file, text + &(0..tokens).map(section).collect::<String>()).expect("writes");
        file
    });
    let two = two.to_str().expect("text");
    home.run_with(&program("fork_environment"), &[two], &[("METASLOT_CONF", three.as_os_str())]);
}

#[test]
fn whatever_threads_do_at_a_fork_the_child_inherits_no_open_store() {
    Home::new("fork-at-work").run(&program("fork_at_work"), &[]);
}

#[test]
fn three_hundred_cycles_keep_memory_and_descriptors_as_they_are() {
    println!("{}", Home::new("cycles").run(&program("cycles"), &[]));
}

#[test]
fn what_hosts_were_promised_holds() {
    println!("{}", Home::empty("promises").run(&program("promises"), &[]));
}

#[test]
fn every_failing_call_but_a_short_buffer_ends_its_operation() {
    Home::new("endings").run(&program("endings"), &[]);
}

#[test]
fn a_wrong_call_answers_the_code_that_says_why() {
    Home::new("codes").run(&program("codes"), &[]);
}

#[test]
fn a_panic_is_an_error_code_and_ends_that_operation_only() {
    let library = harness::library_that_panics();
    let environment = [("METASLOT_MODULE", library.as_os_str())];
    let home = Home::empty("panics");
    home.run_with(&program("panics"), &[], &environment);
    home.assert_empty();
}

#[test]
fn operations_of_asynchronous_sessions_arrive_in_any_order() {
    println!("{}", Home::new("asynchronous").run(&program("asynchronous"), &[]));
}

#[test]
fn derivations_of_asynchronous_sessions_are_those_of_others() {
    let said = Home::new("derivations").run(&program("derivations"), &[]);
    println!("{said}");
    let at_once = said.lines().filter(|line| line.contains(" 0 of "));
    assert!(at_once.count() == 0 || !cpu::cpu().has(Cpu::IFMA), "{said}");
}

/// On a processor without some instructions, or with the lanes left out, everything gives the same results, and what needs
/// them is done by itself.
#[test]
fn without_instructions_or_lanes_the_results_are_the_same() {
    let (asynchronous, promises) = (program("asynchronous"), program("promises"));
    let all = r#"lanes_without = ["avx2", "aes"]"#;
    for (name, setting, rsa, cbc, md5) in [
        ("with", "", true, true, true),
        ("ifma", r#"lanes_without = ["ifma"]"#, false, true, true),
        ("vaes", r#"lanes_without = ["vaes"]"#, true, false, true),
        ("avx512", r#"lanes_without = ["avx512"]"#, false, false, true),
        ("all", all, false, false, false),
        ("off", "lanes = false", false, false, false),
    ] {
        let home = Home::new(&format!("without-{name}"));
        let file = home.path().join("metaslot.toml");
        let token = home.path().join("token/token.db");
        fs::write(
            &file,
            format!("{setting}\n[[token]]\npath = {token:?}\ndescription = \"here\"\n"),
        )
        .unwrap();
        let variables = [("METASLOT_CONF", file.as_os_str())];
        let said = home.run_with(&asynchronous, &[], &variables);
        let pending = |what: &str| {
            let line = said.lines().find(|line| line.starts_with(what)).unwrap_or_default();
            assert!(line.ends_with("pending"), "{what}:\n{said}");
            !line.contains(" 0 of ")
        };
        // What a processor without these instructions does not have, no setting gives it.
        let has = |extension| cpu::cpu().has(extension);
        assert_eq!(pending("0x1:"), rsa && has(Cpu::IFMA), "RSA, {name}");
        assert_eq!(pending("CKM_AES_CBC:"), cbc && has(Cpu::VAES), "AES, {name}");
        assert_eq!(pending("0x210:"), md5 && has(Cpu::AVX2), "MD5, {name}");
        if name == "ifma" {
            let said = home.run_with(&program("derivations"), &[], &variables);
            assert!(said.contains("X25519: 0 of "), "{said}");
        }
        if name == "all" {
            home.run_with(&program("together"), &[], &variables);
            home.run_with(&promises, &[], &variables);
        }
    }
}

#[test]
fn what_ends_stays_ended_whoever_holds_it_and_whoever_changes_it() {
    Home::new("races").run(&program("races"), &[]);
}

#[test]
fn threads_that_compute_together_get_what_one_alone_gets() {
    println!("{}", Home::new("together").run(&program("together"), &[]));
}

#[test]
fn old_ciphers_give_the_same_in_one_call_in_parts_and_together() {
    let home = Home::new("old-ciphers");
    let file = home.path().join("metaslot.toml");
    let token = home.path().join("token/token.db");
    let setting = format!(
        "[[token]]\npath = {token:?}\ndescription = \"here\"\nallow = [\"weak-ciphers\"]\n"
    );
    fs::write(&file, setting).unwrap();
    let variables = [("METASLOT_CONF", file.as_os_str())];
    println!("{}", home.run_with(&program("old_ciphers"), &[], &variables));
}

#[test]
fn pins_are_as_long_as_configured_and_a_pause_is_no_wrong_pin() {
    let home = Home::new("pins");
    let file = home.path().join("metaslot.toml");
    let token = home.path().join("token/token.db");
    fs::write(&file, format!("[[token]]\npath = {token:?}\npin_min = 8\n")).unwrap();
    home.run_with(&program("pins"), &[], &[("METASLOT_CONF", file.as_os_str())]);
}

#[test]
fn a_call_for_which_memory_is_out_says_so_and_harms_no_other() {
    println!("{}", Home::new("exhaustion").run(&program("exhaustion"), &[]));
}

#[test]
fn a_heap_that_ends_at_any_allocation_ends_no_host() {
    let home = Home::new("heap-ends");
    let (file, token) = (home.path().join("metaslot.toml"), home.path().join("token/token.db"));
    let token = format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n");
    fs::write(&file, format!("self_tests = true\n{token}")).unwrap();
    let program = program_with("heap_ends", "heap_ends", &["-rdynamic"]);
    println!("{}", home.run_with(&program, &["11"], &[("METASLOT_CONF", file.as_os_str())]));
}

#[test]
fn post_quantum_keys_sign_stay_and_travel() {
    Home::new("lattices").run(&program("lattices"), &[]);
}

#[test]
fn keys_of_x25519_sign_or_agree() {
    Home::new("xeddsa").run(&program("xeddsa"), &[]);
}

#[test]
fn keys_of_hashes_sign_stay_and_travel() {
    Home::new("slh-dsa").run(&program("slh_dsa"), &[]);
}

#[test]
fn new_groups_make_pairs_where_the_policy_allows() {
    let program = program("parameters");
    Home::new("parameters").run(&program, &[]);
    let home = Home::new("parameters-allowed");
    let file = home.path().join("metaslot.toml");
    let token = home.path().join("token");
    let text = format!("[[token]]\npath = {token:?}\nallow = [\"dsa\", \"weak-groups\"]\n");
    fs::write(&file, text).unwrap();
    home.run_with(&program, &["allowed"], &[("METASLOT_CONF", file.as_os_str())]);
}

#[test]
fn a_signature_may_come_before_its_data() {
    Home::new("signature_first").run(&program("signature_first"), &[]);
}

#[test]
fn one_key_signs_many_messages() {
    let home = Home::new("signed_messages");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    home.run_with(&program("signed_messages"), &[], &variables);
    let mut cells = read::processes(&[runtime]).into_iter().flat_map(|page| page.operations);
    let refused = cells.find(|(kind, _)| kind.mechanism == metaslot_ck::CKM_HOTP).unwrap().1;
    assert_eq!((refused.operations, refused.bytes, refused.errors), (2, 0, 2));
}

#[test]
fn one_key_seals_many_messages() {
    Home::new("messages").run(&program("messages"), &[]);
}

#[test]
fn no_iv_comes_twice_whatever_happens_to_processes() {
    // METASLOT_MESSAGES=1000000 seals a million in each process, and takes minutes.
    let messages = std::env::var("METASLOT_MESSAGES").unwrap_or_else(|_| String::from("20000"));
    let kills = (messages.parse().unwrap_or(0) / 5000_usize).clamp(4, 100).to_string();
    let said = Home::new("iv-processes").run(&program("iv_processes"), &[&messages, &kills]);
    println!("{said}");
}

#[test]
fn what_one_side_encapsulates_the_other_opens() {
    Home::new("encapsulation").run(&program("encapsulation"), &[]);
}

#[test]
fn what_the_host_has_by_numbers_that_were_ours_is_left_alone() {
    println!("{}", Home::new("closed").run(&program("closed"), &[]));
}

#[test]
fn a_host_that_forks_and_opens_files_keeps_its_token() {
    println!("{}", Home::new("numbers").run(&program("numbers"), &["6"]));
}

#[test]
fn a_process_with_few_descriptors_works_when_it_has_more() {
    let home = Home::new("few-descriptors");
    let (file, token) = (home.path().join("metaslot.toml"), home.path().join("token/token.db"));
    fs::write(&file, format!("[[token]]\npath = {token:?}\nkdf = \"weak-for-tests\"\n")).unwrap();
    home.run_with(&program("few_descriptors"), &[], &[("METASLOT_CONF", file.as_os_str())]);
}

#[test]
fn what_was_stored_stays_though_the_index_is_taken_away() {
    let home = Home::new("index-taken");
    let index = home.path().join(".local/share/metaslot/token.db-shm");
    println!("{}", home.run(&program("index_taken"), &[index.to_str().unwrap(), "4"]));
}

#[test]
fn what_was_stored_is_read_though_the_index_is_taken_away_and_the_log_ended() {
    let home = Home::new("index-ended");
    let index = home.path().join(".local/share/metaslot/token.db-shm");
    home.run(&program("index_ended"), &[index.to_str().unwrap()]);
}

#[test]
fn what_another_thread_changes_meanwhile_gives_no_key_away() {
    println!("{}", Home::new("torn").run(&program("torn"), &[]));
}

#[test]
fn keys_are_wrapped_under_nonces_that_the_token_makes_and_says() {
    Home::new("authenticated_wrap").run(&program("authenticated_wrap"), &[]);
}

#[test]
fn a_session_says_whether_what_it_did_last_was_approved() {
    let home = Home::new("validation");
    let file = home.path().join("metaslot.toml");
    home.run_with(&program("validation"), &[], &[("METASLOT_CONF", file.as_os_str())]);
}

#[test]
fn a_token_says_its_profiles_and_mechanisms_and_keeps_trust() {
    for policy in ["default", "legacy"] {
        let home = Home::new(&format!("said-{policy}"));
        let file = home.path().join("metaslot.toml");
        let text = format!("[[token]]\npath = {:?}\npolicy = {policy:?}\n", home.path().join("db"));
        fs::write(&file, text).expect("the directory is ours");
        home.run_with(&program("said"), &[policy], &[("METASLOT_CONF", file.as_os_str())]);
    }
}

#[test]
fn a_profile_is_announced_whose_case_of_the_committee_holds() {
    let cases = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../testdata/profiles");
    let replay = program("profiles");
    for case in ["BL-M-1-32", "EXT-M-1-32", "AUTH-M-1-32", "CERT-M-1-32"] {
        let directory = cases.to_str().expect("the path is text");
        Home::new(case).run(&replay, &[directory, &format!("{case}.txt")]);
    }
}

#[test]
fn a_thread_with_a_small_stack_can_do_everything() {
    Home::new("stack").run(&program("stack"), &[]);
}

/// The same promises where OpenSSL does what it can.
#[cfg(feature = "openssl")]
#[test]
fn the_promises_hold_where_openssl_computes() {
    const LIMITS: &str = r#"
[provider.openssl]
[provider.lanes]
disable = ["CKM_SHA*", "CKM_RSA*", "CKM_AES*", "CKM_EC*", "CKM_ED*"]
[provider.awslc]
disable = ["CKM_SHA256", "CKM_SHA256_HMAC*", "CKM_SHA256_RSA_PKCS*", "CKM_AES_GCM", "CKM_AES_CBC*", "CKM_AES_CTR", "CKM_AES_ECB", "CKM_EC*"]
"#;
    let libcrypto = harness::find_library("libcrypto.so.3").expect("it is installed");
    for name in ["promises", "stack", "memory", "fork", "curves"] {
        let program = program_with(name, &format!("openssl-{name}"), &[]);
        // The second time beside the process's own.
        for preloaded in [None, Some(&libcrypto)] {
            let home = Home::new(&format!("openssl-{name}-{}", preloaded.is_some()));
            let file = home.path().join("metaslot.toml");
            let token = home.path().join("token/token.db");
            let text = format!("[[token]]\npath = {token:?}\ndescription = \"here\"\n{LIMITS}");
            fs::write(&file, text).unwrap();
            let mut variables = vec![("METASLOT_CONF", file.as_os_str())];
            variables.extend(preloaded.map(|libcrypto| ("LD_PRELOAD", libcrypto.as_os_str())));
            home.run_with(&program, &[], &variables);
        }
    }
}

/// With its debuggers' own picture of the kernel: no vDSO, no AVX-512, system calls that it does not know.
#[test]
fn a_host_under_valgrind_works_and_touches_no_memory_but_its_own() {
    Home::new("valgrind").run_under_valgrind(&program("codes"));
}

#[test]
fn an_unconfigured_module_says_and_makes_nothing() {
    let home = Home::empty("unconfigured");
    home.run(&program("unconfigured"), &[]);
    home.assert_empty();
}

#[test]
fn a_wrong_configuration_is_explained_and_nothing_is_printed() {
    let unconfigured = program_with("unconfigured", "misconfigured", &[]);
    let home = Home::empty("misconfigured");
    let file = home.path().join("metaslot.toml");
    let variables = [("METASLOT_CONF", file.as_os_str())];
    let name = file.display();
    let missing = format!("{name}: cannot be read: No such file or directory");
    home.run_with(&unconfigured, &[&missing], &variables);
    fs::write(&file, "[[token]]\npath = \"/t.db\"\n\ncolour = 1\n").unwrap();
    let unknown = format!("{name}: line 4: a token has no setting \"colour\"");
    home.run_with(&unconfigured, &[&unknown], &variables);
    let tokens = |count| "[[token]]\npath = \"/t.db\"\n".repeat(count);
    fs::write(&file, tokens(MAX_SLOTS + 1)).unwrap();
    let line = 2 * MAX_SLOTS + 1;
    let many = format!("{name}: line {line}: there are at most {MAX_SLOTS} tokens");
    home.run_with(&unconfigured, &[&many], &variables);
}

#[test]
fn the_last_of_many_tokens_works_as_the_first() {
    let home = Home::new("many-tokens");
    let file = home.path().join("metaslot.toml");
    let token = |number: usize| {
        let path = home.path().join(format!("{number}/token.db"));
        // The same cost in every build.
        format!("[[token]]\npath = {path:?}\nkdf = \"pbkdf2\"\n")
    };
    let many_tokens = program("many_tokens");
    for last in [65, MAX_SLOTS - 1] {
        fs::write(&file, (0..=last).map(token).collect::<String>()).unwrap();
        let variables = [("METASLOT_CONF", file.as_os_str())];
        home.run_with(&many_tokens, &[&last.to_string()], &variables);
    }
}

#[test]
fn the_process_libcrypto_makes_no_difference() {
    let Some(libcrypto) = harness::find_library("libcrypto.so.3") else {
        panic!("libcrypto.so.3 is not installed");
    };
    let variables = [("LD_PRELOAD", libcrypto.as_os_str())];
    Home::empty("preload").run_with(&program_with("promises", "preloaded", &[]), &[], &variables);
}

#[test]
fn only_functions_of_the_standard_are_exported() {
    let defined = harness::output("nm", &["-D", "--defined-only"], module());
    let names: Vec<&str> = defined.lines().filter_map(|line| line.split(' ').nth(2)).collect();
    let mut expected: Vec<&str> = metaslot_ck::Function::ALL.iter().map(|f| f.name()).collect();
    expected.sort_unstable();
    assert_eq!(names, expected);
}

/// Nothing of the file can be written and executed, or written after loading where code is reached through it, and no
/// directory that it names is searched for libraries.
#[test]
fn the_file_is_as_hard_as_the_linker_makes_it() {
    let dynamic = harness::output("readelf", &["-d", "--wide"], module());
    for unwanted in ["(RPATH)", "(RUNPATH)", "(TEXTREL)", " TEXTREL"] {
        assert!(!dynamic.contains(unwanted), "{unwanted}:\n{dynamic}");
    }
    // Full RELRO: bound when loaded, so that the whole table of addresses is read only afterwards.
    assert!(dynamic.contains("Flags: NOW"), "{dynamic}");
    let segments = harness::output("readelf", &["-l", "--wide"], module());
    let flags = |name: &str| -> Vec<String> {
        let lines = segments.lines().filter(|line| line.trim_start().starts_with(name));
        // Six numbers stand between the name and the flags, which have spaces in them.
        lines.map(|line| line.split_whitespace().skip(6).collect::<Vec<_>>().join(" ")).collect()
    };
    let is = |flags: &str, of: char| flags.chars().any(|flag| flag == of);
    assert_eq!(flags("GNU_RELRO").len(), 1, "{segments}");
    let stack = flags("GNU_STACK");
    assert!(stack.len() == 1 && !is(&stack[0], 'E'), "{segments}");
    let loaded = flags("LOAD");
    assert!(loaded.len() >= 3, "{segments}");
    assert!(!loaded.iter().any(|flags| is(flags, 'W') && is(flags, 'E')), "{segments}");
}

#[test]
fn the_probes_are_where_tracers_look_for_them() {
    let notes = harness::output("readelf", &["-n", "--wide"], module());
    let mut probes: Vec<_> = notes
        .split("Provider: metaslot")
        .skip(1)
        .map(|probe| {
            let after = |name: &str| probe.split_once(name).unwrap_or_default().1.lines().next();
            let arguments = after("Arguments:").unwrap_or_default().split_whitespace().count();
            (after("Name: ").unwrap_or_default().to_owned(), arguments)
        })
        .collect();
    probes.sort();
    probes.dedup();
    let wanted = [("failover", 4), ("operation__end", 5), ("operation__start", 0), ("route", 5)];
    assert_eq!(probes, wanted.map(|(name, arguments)| (name.to_owned(), arguments)));
}

#[test]
fn nothing_but_the_c_library_is_needed() {
    let undefined = harness::output("nm", &["-D", "--undefined-only"], module());
    for hook in ["OPENSSL_", "CRYPTO_", "EVP_", "sdallocx", "sqlite3_", "aws_lc"] {
        assert!(!undefined.contains(hook), "{hook} is left open:\n{undefined}");
    }
    let dynamic = harness::output("readelf", &["-d", "--wide"], module());
    let allowed = ["libc.so.6", "libm.so.6", "libgcc_s.so.1", "ld-linux-x86-64.so.2"];
    for needed in dynamic.lines().filter(|line| line.contains("(NEEDED)")) {
        assert!(allowed.iter().any(|name| needed.contains(name)), "{needed}");
    }
    for flag in ["NODELETE", "BIND_NOW"] {
        assert!(dynamic.contains(flag), "{flag}:\n{dynamic}");
    }
    // One entry is the C runtime's own; a second would be a destructor of ours.
    let entries = dynamic.lines().find(|line| line.contains("(FINI_ARRAYSZ)")).unwrap_or_default();
    assert!(entries.contains("8 (bytes)"), "{entries}");
}

#[test]
fn the_header_has_the_layouts_that_others_have() {
    let home = Home::new("layout");
    let ours = home.run(&program("layout"), &[]);
    let options = ["-DWITH_P11_KIT", "-I/usr/include/p11-kit-1"];
    let theirs = home.run(&program_with("layout", "layout-p11-kit", &options), &[]);
    assert_eq!(ours, theirs);
}

#[test]
fn a_page_is_kept_where_the_runtime_directory_is() {
    let home = Home::empty("counters");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    home.run_with(&program_with("promises", "counted", &[]), &[], &variables);
    let pages: Vec<_> = fs::read_dir(&runtime).unwrap().flatten().map(|e| e.path()).collect();
    let [page] = &pages[..] else { panic!("one page: {pages:?}") };
    let process = read::process(page).unwrap();
    assert_eq!(process.program, "counted");
    let calls = |name: &str| process.calls.iter().find(|row| row.0.name() == name).map(|row| row.1);
    assert!(calls("C_Sign").unwrap().errors >= 2, "{:?}", process.calls);
    assert!(process.codes.iter().any(|row| row.0.name() == "C_Login"), "{:?}", process.codes);
    let ours =
        |(kind, _): &(read::Kind, read::Cell)| ["lanes", "awslc"].contains(&kind.provider.as_str());
    assert!(process.operations.iter().all(ours), "{:?}", process.operations);
    assert!(process.operations.iter().any(|(kind, _)| kind.mechanism == metaslot_ck::CKM_AES_GCM));
    let happened = |wanted| process.events.iter().any(|(event, _)| *event == wanted);
    assert!(happened(Event::Login) && happened(Event::LoginFailure), "{:?}", process.events);
    assert!(!happened(Event::Panic));
    assert!(Path::new(page).metadata().unwrap().len() > 0);
}

#[test]
fn a_call_that_waits_is_counted_once_and_as_it_ended() {
    let home = Home::new("waits");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    home.run_with(&program_with("lifecycle", "waits", &[]), &["wait-for-slot-event"], &variables);
    let page = fs::read_dir(&runtime).unwrap().flatten().next().expect("there is a page");
    let process = read::process(&page.path()).unwrap();
    let waited = |row: &&(_, _)| row.0 == metaslot_ck::Function::WaitForSlotEvent;
    let calls = process.calls.iter().find(waited).expect("it was called").1;
    assert_eq!((calls.calls, calls.errors), (2, 2), "no event yet, and the end");
}

/// What a client counted of one process.
#[derive(Default)]
struct Truth {
    killed: bool,
    threads: u64,
    /// Begun, returned, failed.
    calls: BTreeMap<String, [u64; 3]>,
    /// Operations, bytes, errors, by mechanism and size class.
    operations: BTreeMap<(u64, usize), [u64; 3]>,
}

fn truths(printed: &str) -> BTreeMap<u32, Truth> {
    let mut truths: BTreeMap<u32, Truth> = BTreeMap::new();
    for line in printed.lines() {
        let words: Vec<&str> = line.split(' ').collect();
        let truth =
            truths.entry(words[1].parse().expect("the program prints numbers")).or_default();
        let numbers = |from: usize| {
            [0, 1, 2].map(|at| words[from + at].parse::<u64>().expect("the program prints numbers"))
        };
        match words[0] {
            "process" => {
                truth.killed = words[2] == "killed";
                truth.threads = words[3].parse().expect("the program prints numbers");
            }
            "call" => drop(truth.calls.insert(words[2].to_owned(), numbers(3))),
            _ => {
                let mechanism = match words[2] {
                    "hmac" => metaslot_ck::CKM_SHA256_HMAC,
                    _ => metaslot_ck::CKM_SHA256,
                };
                let kind = (mechanism, words[3].parse().expect("the program prints numbers"));
                truth.operations.insert(kind, numbers(4));
            }
        }
    }
    truths
}

#[test]
fn counters_tell_the_truth_of_processes_that_fork_and_are_killed() {
    let home = Home::new("truth");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    let truths = truths(&home.run_with(&program("truth"), &[], &variables));
    assert_eq!(truths.len(), 16);
    let pages = pages(&runtime).into_iter().map(|page| read::process(&page).unwrap());
    let pages: BTreeMap<u32, read::Process> = pages.map(|page| (page.pid, page)).collect();
    for (pid, truth) in &truths {
        compare(&pages[pid], truth);
    }
    assert!(truths.values().any(|truth| truth.killed));
    // All have ended, and are added up once: these, and the one that began them.
    let operations = |process: &read::Process| {
        process.operations.iter().map(|(_, cell)| cell.operations).sum::<u64>()
    };
    for _ in 0..2 {
        let all = read::processes(std::slice::from_ref(&runtime));
        let [sum] = &all[..] else { panic!("one sum: {all:?}") };
        assert_eq!(sum.ended, truths.len() as u64 + 1);
        assert_eq!(operations(sum), pages.values().map(operations).sum::<u64>());
    }
}

/// The pages in a directory, without what ended processes counted.
fn pages(directory: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(directory)
        .expect("the directory is there")
        .flatten()
        .map(|entry| entry.path());
    files.filter(|file| file.extension().is_some_and(|end| end == "counters")).collect()
}

#[test]
fn totals_never_go_back_while_processes_begin_and_end() {
    const PROCESSES: u64 = 40;
    const DIGESTS: u64 = 7;
    let home = Home::new("brief");
    let (runtime, brief) = (home.path().join("run/metaslot"), program("brief"));
    fs::create_dir_all(&runtime).unwrap();
    let directories = [runtime];
    let look = || {
        let all = read::processes(&directories);
        let cells = all.iter().flat_map(|process| &process.operations).map(|(_, cell)| cell);
        let ended = all.iter().map(|process| process.ended).max().unwrap_or(0);
        (cells.map(|cell| cell.operations).sum::<u64>(), ended)
    };
    let (left, digests) = (AtomicU64::new(PROCESSES), DIGESTS.to_string());
    let run = || {
        while let Ok(number) = left.fetch_update(SeqCst, SeqCst, |left| left.checked_sub(1)) {
            let mut command = Command::new(&brief);
            command.arg(&digests).env("METASLOT_MODULE", module()).env("HOME", home.path());
            command.env("XDG_RUNTIME_DIR", home.path().join("run"));
            // Every other one has no time to tidy up.
            if number % 2 == 0 {
                command.arg("killed");
            }
            command.status().expect("the program can be run");
        }
    };
    std::thread::scope(|scope| {
        let runners = [(); 3].map(|()| scope.spawn(run));
        let mut last = 0;
        while runners.iter().any(|runner| !runner.is_finished()) {
            let (now, _) = look();
            assert!(now >= last, "{now} after {last}");
            last = now;
        }
    });
    assert_eq!(look(), (PROCESSES * DIGESTS, PROCESSES));
}

/// Equal, to the operation; a thread that was killed within a call may have been counted or not.
fn compare(page: &read::Process, truth: &Truth) {
    let pid = page.pid;
    for (name, [begun, returned, failed]) in &truth.calls {
        let counted = page.calls.iter().find(|row| row.0.name() == name);
        let counted = counted.map_or_else(read::Calls::default, |row| row.1);
        assert!((*returned..=*begun).contains(&counted.calls), "{pid} {name}: {counted:?}");
        assert!(truth.killed || begun == returned, "{pid} {name}");
        assert!(truth.killed || counted.errors == *failed, "{pid} {name}: {counted:?}");
    }
    let mut sums: BTreeMap<(u64, usize), [u64; 3]> = BTreeMap::new();
    for (kind, cell) in &page.operations {
        let sum = sums.entry((kind.mechanism, kind.size)).or_default();
        *sum = [sum[0] + cell.operations, sum[1] + cell.bytes, sum[2] + cell.errors];
    }
    let mut expected = truth.operations.clone();
    expected.retain(|_, numbers| numbers[0] > 0);
    if truth.killed {
        let count = |rows: &BTreeMap<_, [u64; 3]>| rows.values().map(|row| row[0]).sum::<u64>();
        let (counted, expected) = (count(&sums), count(&expected));
        assert!((expected..=expected + truth.threads).contains(&counted), "{pid}: {counted}");
    } else {
        assert_eq!(sums, expected, "{pid}");
    }
}

#[test]
fn each_forked_child_has_a_page_of_its_own() {
    let home = Home::new("forked-counters");
    let runtime = home.path().join("run/metaslot");
    fs::create_dir_all(&runtime).unwrap();
    let variables = [("XDG_RUNTIME_DIR", runtime.parent().unwrap().as_os_str())];
    home.run_with(&program_with("fork", "forked", &[]), &[], &variables);
    let pages = pages(&runtime);
    let read: Vec<_> = pages.iter().map(|page| read::process(page).unwrap()).collect();
    // Those who came later removed the pages of those who were gone, so only some are left: at
    // least that of the last one.
    assert!(!read.is_empty());
    for (page, process) in pages.iter().zip(&read) {
        let name = page.file_name().unwrap().to_str().unwrap();
        assert!(name.starts_with(&format!("{}-", process.pid)), "{name}");
    }
}
