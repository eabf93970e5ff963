// SPDX-License-Identifier: Apache-2.0
//! `metaslot setup`: what a verification leaves behind, whose PIN is tried, and what bad input changes: nothing.

#[path = "common/sandbox.rs"]
mod sandbox;

use rustix::process::{Pid, Signal, kill_process};
use sandbox::Sandbox;
use std::env;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

/// A token with a key, and in the program's place one that starts a server in a session of its own, which has a child, and then does
/// what `end` says.
fn sandbox(end: &str) -> Sandbox {
    let sandbox = Sandbox::make(&sandbox::module());
    let pins = "--so-pin-source so.pin --pin-source user.pin --quiet";
    sandbox.run(&format!("metaslot token init --label web {pins}"));
    sandbox.run("metaslot key generate --label site --pin-source user.pin --quiet");
    let server = "sleep 1000 & echo $$ $! > $HOME/left.new; mv $HOME/left.new $HOME/left; wait";
    let program = format!(
        "#!/bin/sh\nsetsid sh -c '{server}' &\nuntil test -e $HOME/left; do sleep 0.01; done\n\
         echo $$ > $HOME/begun.new; mv $HOME/begun.new $HOME/begun\n{end}\n"
    );
    sandbox.run(&format!(
        "mkdir bin tmp; cat > bin/p11tool <<'END'\n{program}END\nchmod 755 bin/p11tool"
    ));
    sandbox
}

/// Runs it, sends the signal once the program has begun, and gives the exit code or signal.
fn verify(sandbox: &Sandbox, signal: Option<Signal>) -> (Option<i32>, Option<i32>) {
    let home = sandbox.directory();
    let mut metaslot = sandbox.program(env!("CARGO_BIN_EXE_metaslot"));
    let path = format!("{}/bin:{}", home.display(), env::var("PATH").unwrap_or_default());
    metaslot.env("PATH", path).env("TMPDIR", home.join("tmp"));
    metaslot.args("setup gnutls --verify --directory conf --pin-source user.pin".split(' '));
    let mut child = metaslot.stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("it runs");
    if let Some(signal) = signal {
        while !home.join("begun").exists() {
            thread::sleep(Duration::from_millis(10));
        }
        let pid = Pid::from_raw(child.id().cast_signed()).expect("it has a number");
        kill_process(pid, signal).expect("it runs");
    }
    let status = child.wait().expect("it ends");
    (status.code(), status.signal())
}

/// Processes that are not gone, and files of the run.
fn left(sandbox: &Sandbox) -> Vec<String> {
    let state = "for pid in $(cat left begun); do ps -o pid=,stat=,comm= $pid; done | grep -v Z";
    sandbox.run(&format!("{state}; ls tmp"))
}

#[test]
fn a_verification_that_is_interrupted_leaves_no_server_and_no_file() {
    for signal in [Signal::INT, Signal::TERM, Signal::HUP] {
        let sandbox = sandbox("sleep 1000");
        let ended = verify(&sandbox, Some(signal));
        assert_eq!(left(&sandbox), Vec::<String>::new(), "{signal:?}");
        assert_eq!(ended, (None, Some(signal.as_raw())));
    }
}

/// Nobody can do anything at that signal: what was started sees that the command is gone.
#[test]
fn a_verification_that_is_killed_leaves_no_server_and_no_file() {
    let sandbox = sandbox("sleep 1000");
    assert_eq!(verify(&sandbox, Some(Signal::KILL)), (None, Some(9)));
    let mut is_left = left(&sandbox);
    for _ in 0..100 {
        if is_left.is_empty() {
            return;
        }
        thread::sleep(Duration::from_millis(100));
        is_left = left(&sandbox);
    }
    panic!("{is_left:?}");
}

#[test]
fn a_verification_that_ends_leaves_no_server_and_no_file() {
    for end in ["exit 0", "exit 1", "trap '' TERM; kill -9 $$"] {
        let sandbox = sandbox(end);
        // The program did not use the key.
        assert_eq!(verify(&sandbox, None), (Some(1), None), "{end}");
        assert_eq!(left(&sandbox), Vec::<String>::new(), "{end}");
    }
}

/// A `kill -9` in the moment when a run cleans up leaves its directory, and numbers of processes come again; or another user made it.
#[test]
fn a_directory_of_a_run_before_is_in_no_run_s_way() {
    let sandbox = sandbox("exit 0");
    let verify = "exec metaslot setup gnutls --verify --directory conf --pin-source user.pin";
    let told = sandbox.run(&format!(
        "PATH=$PWD/bin:$PATH TMPDIR=$PWD/tmp sh -c 'mkdir tmp/metaslot-verify-$$; {verify}'; ls tmp | wc -l"
    ));
    let told = told.join("\n");
    assert!(told.contains("gnutls ran, and did not use the key"), "{told}");
    // That of another user stays, or of a run that lives, and ours of one that was killed goes.
    assert!(told.ends_with("\n0"), "{told}");
    let told = sandbox.run(&format!(
        "mkdir tmp/metaslot-verify-1 tmp/metaslot-verify-2 tmp/metaslot-verify-x; chown nobody tmp/metaslot-verify-2
         exec 9< tmp/metaslot-verify-1; flock -n 9
         PATH=$PWD/bin:$PATH TMPDIR=$PWD/tmp sh -c '{verify}' > /dev/null 9<&-; ls tmp; exit 0"
    ));
    assert_eq!(told.last().map(String::as_str), Some("metaslot-verify-x"), "{told:?}");
    assert!(told.iter().any(|name| name == "metaslot-verify-1"), "{told:?}");
}

#[test]
fn a_pin_is_tried_at_no_token_but_the_one_that_it_was_made_for() {
    let sandbox = Sandbox::make(&sandbox::module());
    let tries = "metaslot token show --json | grep tries_left";
    let new = |more: &str| sandbox.run(&format!("metaslot setup gnutls --apply --new site {more}"));
    let made = new("--directory conf");
    assert!(made.iter().any(|line| line.starts_with("metaslot key generate")), "{made:?}");
    assert!(new("--directory conf").iter().all(|line| !line.starts_with("error")), "again");
    // Another configuration's token of the same label.
    sandbox.run("mv token.db first.db; rm -f token.db-*");
    let pins = "--so-pin-source so.pin --pin-source user.pin --quiet";
    sandbox.run(&format!("metaslot token init --label web {pins}"));
    let before = sandbox.run(tries);
    let refused = new("--directory conf").join("\n");
    assert!(refused.contains("is not known to be the PIN of this token"), "{refused}");
    assert!(refused.contains("--pin-source FILE"), "{refused}");
    assert_eq!(sandbox.run(tries), before);
    assert!(!before.is_empty());
    // The right one is taken.
    let named = new("--directory conf --pin-source user.pin").join("\n");
    assert!(named.contains("metaslot key generate"), "{named}");
}

#[test]
fn two_at_a_time_make_one_token_with_one_key() {
    let sandbox = Sandbox::make(&sandbox::module());
    let line = "metaslot setup gnutls --apply --new site --directory conf";
    let told = sandbox.run(&format!("{line} > one & {line} > two; wait"));
    assert!(told.iter().all(|line| !line.starts_with("error")), "{told:?}");
    assert!(told.iter().any(|line| line.starts_with("waiting for another 'metaslot")), "{told:?}");
    let keys = sandbox.run("metaslot key list --quiet --public");
    assert_eq!(keys.len(), 1, "{keys:?}");
    // Another directory is no reason to wait: that one's PIN is not known here.
    sandbox.run("rm -r token.db* conf");
    let line =
        |place: &str| format!("metaslot setup gnutls --apply --new site --directory {place}");
    let told = sandbox.run(&format!("{} & {}; wait", line("conf"), line("more"))).join("\n");
    assert!(told.contains("--pin-source FILE"), "{told}");
    assert!(!told.contains("--force"), "{told}");
}

#[test]
fn no_token_is_made_in_the_place_of_one_whose_store_is_gone() {
    let sandbox = Sandbox::make(&sandbox::module());
    let new =
        || sandbox.run("metaslot setup gnutls --apply --new site --directory conf").join("\n");
    assert!(!new().contains("error"));
    sandbox.run("mkdir away; mv token.db* away");
    let before = everything(&sandbox);
    let told = new();
    assert!(
        told.starts_with("error: /home/you/conf/web.token is of a token that is not there"),
        "{told}"
    );
    assert_eq!(everything(&sandbox), before);
    assert!(sandbox.run("ls token.db").join("").ends_with("? 2"));
    sandbox.run("mv away/token.db* .");
    assert!(!new().contains("error"));
}

#[test]
fn an_empty_pin_file_is_reported_and_nothing_is_made() {
    let sandbox = Sandbox::make(&sandbox::module());
    for file in ["web.pin", "web.so-pin"] {
        sandbox.run(&format!("rm -rf conf; mkdir conf; : > conf/{file}"));
        let told = sandbox.run("metaslot setup gnutls --apply --new site --directory conf");
        assert!(told[0].contains(&format!("conf/{file} is empty")), "{told:?}");
        assert!(told[1].starts_with("hint: rm "), "{told:?}");
        assert_eq!(sandbox.run("ls conf; ls token.db 2> /dev/null || true"), [file], "made");
    }
    let told = sandbox.run("rm conf/*; metaslot setup gnutls --apply --new site --directory conf");
    assert!(told.iter().all(|line| !line.starts_with("error")), "{told:?}");
    let told = sandbox.run(": > empty; metaslot setup gnutls --pin-source empty");
    assert!(told[0].contains("empty is empty"), "{told:?}");
}

/// The names of all recipes, as the command says them.
fn recipes(sandbox: &Sandbox) -> Vec<String> {
    let told = sandbox.run("metaslot setup nothing");
    let names = told.iter().find_map(|line| line.strip_prefix("hint: there is one for "));
    names.expect("a hint").split(", ").map(str::to_owned).collect()
}

/// A token with a key, and programs that do nothing: what is not installed here can be set up, too.
fn with_a_key() -> Sandbox {
    let sandbox = Sandbox::make(&sandbox::module());
    let pins = "--so-pin-source so.pin --pin-source plain.pin --quiet";
    sandbox.run(&format!(
        "tr -d '\\n' < user.pin > plain.pin; metaslot token init --label web {pins}"
    ));
    sandbox.run("metaslot key generate --label site --id 01 --pin-source plain.pin --quiet");
    sandbox.run("metaslot cert selfsign site --pin-source plain.pin --out site.pem");
    let commands = "openssl nginx apache2 stunnel4 psql curl osslsigncode keytool modutil p11tool p11-kit ssh git keymgr pki \
                    haproxy mariadbd pg_ctlcluster openvpn";
    sandbox
        .run(&format!("mkdir fakes; for name in {commands}; do ln -s /bin/true fakes/$name; done; touch fakes/pkcs11.so fakes/metaslot.so"));
    sandbox
}

/// Gives the token to the user of a service, where root may do that; the others have none of their own.
fn share(sandbox: &Sandbox, program: &str) {
    let group = match program {
        "nginx" | "apache" => "www-data",
        "mariadb" => "mysql",
        program => program,
    };
    sandbox.run(&format!("chgrp {group} . token.db* && chmod 2770 . && chmod 660 token.db*"));
}

/// `setup PROGRAM`, in which the programs of `with_a_key` are found.
fn setup(sandbox: &Sandbox, program: &str, more: &str) -> String {
    share(sandbox, program);
    let line = "metaslot setup --key site --pin-source plain.pin --directory conf";
    sandbox
        .run(&format!("OPENSSL_MODULES=$PWD/fakes PATH=$PWD/fakes:$PATH {line} {more} {program}"))
        .join("\n")
}

/// Every file of the directory: name, inode, mode, time and content.
fn everything(sandbox: &Sandbox) -> Vec<String> {
    let each = "stat -c '%n %i %a %y' {} \\; -exec sha256sum {} \\;";
    sandbox.run(&format!(
        "find . -path ./run -prune -o -type f ! -name 'token.db*' -exec {each} | sort"
    ))
}

#[test]
fn every_recipe_twice_is_as_good_as_once() {
    let sandbox = with_a_key();
    for program in recipes(&sandbox) {
        let first = setup(&sandbox, &program, "--apply");
        assert!(!first.contains("error"), "{program}: {first}");
        let made = everything(&sandbox);
        let second = setup(&sandbox, &program, "--apply");
        assert!(!second.contains("written"), "{program}: {second}");
        assert_eq!(first.replace("written ", "unchanged "), second, "{program}");
        assert_eq!(everything(&sandbox), made, "{program}");
        sandbox.run("rm -rf conf");
    }
}

#[test]
fn every_recipe_leaves_what_it_has_not_made() {
    let sandbox = with_a_key();
    for program in recipes(&sandbox) {
        let printed = setup(&sandbox, &program, "");
        let files: Vec<&str> =
            printed.lines().filter_map(|line| line.strip_prefix("# /home/you/conf/")).collect();
        assert!(!printed.contains("error: "), "{program}: {printed}");
        let places = files.iter().flat_map(|file| [(*file).to_owned(), format!("{file}.old")]);
        for place in places {
            for content in ["not { ours", ""] {
                sandbox.run(&format!("mkdir -p conf; printf '{content}' > conf/{place}"));
                let before = everything(&sandbox);
                let told = setup(&sandbox, &program, "--apply");
                assert!(
                    told.contains(&format!("conf/{place} was not made by this command")),
                    "{told}"
                );
                assert!(told.ends_with("? 1"), "{program}: {told}");
                assert_eq!(everything(&sandbox), before, "{program}");
                sandbox.run("rm -rf conf");
            }
        }
        // A link to a file of others is not followed, nor one to nothing.
        for (place, target) in
            files.iter().flat_map(|file| [(file, "plain.pin"), (file, "nothing")])
        {
            sandbox.run(&format!("mkdir -p conf; ln -s $PWD/{target} conf/{place}"));
            let before = everything(&sandbox);
            let told = setup(&sandbox, &program, "--apply");
            assert!(told.ends_with("? 1"), "{program}: {told}");
            assert_eq!(everything(&sandbox), before, "{program}");
            sandbox.run("rm -rf conf");
        }
    }
}

#[test]
fn no_configuration_is_written_with_a_certificate_that_is_not_there() {
    let sandbox = with_a_key();
    let new = "cp plain.pin conf.pin; metaslot setup --apply --new site --directory conf --pin-source conf.pin";
    share(&sandbox, "nginx");
    sandbox.run(&format!("PATH=$PWD/fakes:$PATH {new} nginx; rm site.pem"));
    let before = everything(&sandbox);
    for program in ["nginx", "apache", "stunnel"] {
        for (more, file) in [("", "site.pem"), ("--cert none/other.pem", "none/other.pem")] {
            let told = setup(&sandbox, program, &format!("--apply {more}"));
            let what = format!("error: there is no certificate {file}, which {program} needs");
            assert!(told.starts_with(&what), "{told}");
            assert!(told.contains("hint: metaslot cert selfsign LABEL"), "{told}");
            assert_eq!(everything(&sandbox), before, "{program}");
            let printed = setup(&sandbox, program, more);
            assert!(printed.contains(file) && !printed.contains("error: "), "{printed}");
        }
    }
}

#[test]
fn no_recipe_writes_anything_under_a_broken_configuration() {
    let sandbox = with_a_key();
    sandbox.run("echo 'nonsense = 1' >> metaslot.toml");
    let before = everything(&sandbox);
    for program in recipes(&sandbox) {
        for more in ["--apply", "--apply --verify", "--verify"] {
            let told = setup(&sandbox, &program, more);
            assert!(told.contains("metaslot.toml: line "), "{program} {more}: {told}");
            assert!(told.ends_with("? 1"), "{program} {more}: {told}");
        }
        let line = "PATH=$PWD/fakes:$PATH metaslot setup --apply --new more --directory conf";
        let told = sandbox.run(&format!("{line} {program}")).join("\n");
        assert!(told.contains("metaslot.toml: line "), "{program} --new: {told}");
    }
    assert_eq!(everything(&sandbox), before);
}

#[test]
fn nothing_is_made_for_a_provider_that_is_not_there() {
    let sandbox = with_a_key();
    let before = everything(&sandbox);
    for program in ["haproxy", "mariadb", "postgres"] {
        let line = "OPENSSL_MODULES=/nowhere PATH=$PWD/fakes:$PATH metaslot setup --directory conf";
        let told = sandbox
            .run(&format!("{line} --bridge pkcs11-provider --apply --verify --new more {program}"));
        assert_eq!(told[0], "error: OpenSSL's provider for PKCS#11 is not installed");
    }
    assert_eq!(everything(&sandbox), before);
}

/// Programs under the names of all that a recipe runs: their processes look for keys and do no more, and say what is waited for. What
/// they should have signed another process signs, `by`.
fn with_programs_that_list(by: &str) -> Sandbox {
    let sandbox = with_a_key();
    let commands = "openssl nginx apache2 stunnel4 psql curl osslsigncode keytool certutil modutil p11tool p11-kit \
                    ssh-agent ssh-add ssh-keygen git keymgr kzonesign pki haproxy mariadbd openvpn ssh-pkcs11-help";
    let said = "ACCEPT verified verify OK CN=verified BEGIN CERTIFICATE BEGIN SSH SIGNATURE Serialized id: label: web";
    let program = format!(
        "#!/bin/sh\n$HOME/lists/${{0##*/}} key list --pin-source $HOME/plain.pin > $HOME/said\n\
         case \" $* \" in\n*' -pubkey '*) exec cat public.pem ;;\n*' -R '*) {by} ;;\nesac\necho {said}\n"
    );
    sandbox.run(&format!("cat > program <<'END'\n{program}END\nchmod 755 program; mkdir lists"));
    let link = "ln -sf $PWD/program fakes/$name; ln -s $(command -v metaslot) lists/$name";
    sandbox.run(&format!("for name in {commands}; do {link}; done"));
    sandbox
}

#[test]
fn no_recipe_is_verified_by_programs_that_only_list() {
    let sandbox = with_programs_that_list(":");
    let mut run = Vec::new();
    for program in recipes(&sandbox) {
        let told = setup(&sandbox, &program, "--apply --verify");
        assert!(!told.contains("verified: "), "{program}: {told}");
        assert!(told.ends_with("? 1"), "{program}: {told}");
        run.extend(told.contains("did not use the key").then_some(program));
    }
    for program in ["openssl", "nginx", "nss", "gnutls", "haproxy"] {
        assert!(run.iter().any(|run| run == program), "{program} was not run: {run:?}");
    }
}

#[test]
fn another_process_that_signs_does_not_verify_a_program_that_only_lists() {
    let by =
        "metaslot cert csr site --pin-source $HOME/plain.pin | sed /-----/d | base64 -d > request";
    let sandbox = with_programs_that_list(by);
    sandbox.run("rm fakes/openssl");
    let told = setup(&sandbox, "nss", "--apply --verify");
    assert!(told.contains("no process certutil called C_Sign or C_SignFinal"), "{told}");
    assert!(told.contains("hint: the module was used by "), "{told}");
    assert!(told.contains("metaslot"), "{told}");
}

/// The system's directories are looked in as well as the path, so they are hidden where that may be done.
#[test]
fn no_recipe_writes_anything_without_its_program() {
    let sandbox = with_a_key();
    let hidden = "unshare --mount sh -c 'mount -t tmpfs none /usr/sbin && PATH=$0; export PATH; exec \"$@\"'";
    if sandbox.run(&format!("{hidden} $PATH true")).last().is_some_and(|said| said.starts_with('?'))
    {
        return println!("not run: nothing can be mounted here");
    }
    let metaslot = env!("CARGO_BIN_EXE_metaslot");
    let before = everything(&sandbox);
    for program in recipes(&sandbox) {
        let line = |more: &str| {
            format!("{hidden} /none {metaslot} setup {program} --key site --directory conf {more}")
        };
        for more in ["--apply", "--verify", "--apply --verify"] {
            let told = sandbox.run(&line(more)).join("\n");
            assert!(told.starts_with(&format!("error: {program} is not installed")), "{told}");
            assert!(told.contains("hint: apt-get install "), "{told}");
        }
        let told = sandbox.run(&line("")).join("\n");
        assert!(told.contains("is not installed here: apt-get install"), "{told}");
    }
    assert_eq!(everything(&sandbox), before);
}

/// A copy of the machine's configuration is in its place, where that may be done: what is written there is in `etc`.
const OWN_ETC: &str = "unshare --mount sh -c 'mount -t tmpfs none /run && mkdir /run/lock && mount -t tmpfs none /var/log && \
                       mkdir /var/log/nginx /var/log/apache2 && mount -t tmpfs none /var/lib && mkdir /var/lib/nginx && mount --bind etc /etc && exec \"$@\"' sh";

/// Whether that works here for a command.
fn has_own_etc(sandbox: &Sandbox, works: &str) -> bool {
    sandbox.run("cp -a /etc etc");
    let tried = sandbox.run(&format!("{OWN_ETC} {works} > /dev/null"));
    let works_here = tried.last().is_none_or(|said| !said.starts_with('?'));
    if !works_here {
        println!("not run: nothing can be mounted here, or {works} does not work");
    }
    works_here
}

/// `setup --enable` with a key that is there, for a program of this machine.
fn enable(sandbox: &Sandbox, program: &str) -> String {
    let line = "metaslot setup --apply --enable --key site --pin-source plain.pin --directory conf";
    sandbox.run(&format!("{OWN_ETC} {line} {program}")).join("\n")
}

/// The names of what is written, in the machine's configuration and beside it.
fn names(sandbox: &Sandbox) -> Vec<String> {
    sandbox.run("find etc conf ! -type d ! -name 'ld.so*' 2> /dev/null | sort")
}

/// What is broken is refused, what breaks by our files is taken back, and what works stays.
fn the_machines_configuration_is_tested(program: &str, test: &str, own: &str, clash: &str) {
    let sandbox = with_a_key();
    share(&sandbox, program);
    sandbox.run("rm fakes/nginx fakes/apache2");
    if !has_own_etc(&sandbox, test) {
        return;
    }
    let before = names(&sandbox);
    let directory = own.split('/').next().expect("a directory");
    let restore = format!("rm -r etc/{directory}; cp -a own etc/{directory}");
    sandbox.run(&format!("cp -a etc/{directory} own; {clash}"));
    let told = enable(&sandbox, program);
    let what = format!("error: {program}'s configuration does not work with what was written");
    assert!(told.starts_with(&what), "{told}");
    assert!(told.contains("hint: it was taken back; it said: "), "{told}");
    sandbox.run(&format!("{restore}; echo 'nonsense;' >> etc/{own}"));
    let told = enable(&sandbox, program);
    assert!(told.starts_with(&format!("error: {program}'s configuration is broken")), "{told}");
    assert!(told.contains("nonsense"), "{told}");
    sandbox.run(&restore);
    assert_eq!(names(&sandbox), before);
    // What works stays, twice, and when something else breaks it.
    for state in ["written", "unchanged"] {
        let told = enable(&sandbox, program);
        let file = format!("/home/you/conf/{program}-openssl.cnf");
        assert!(told.starts_with(&format!("{state} {file}")), "{told}");
        assert!(told.contains(&format!("in a shell OPENSSL_CONF={file}")), "{told}");
    }
    let server = format!("conf/{program}-server.conf");
    let broken = format!("cp etc/{own} good; echo 'nonsense;' >> etc/{own}");
    sandbox.run(&format!("echo '# more' >> {server}; cp -r conf was; {broken}"));
    assert!(enable(&sandbox, program).contains("broken already"));
    assert_eq!(sandbox.run(&format!("diff -r conf was; cat good > etc/{own}")), [""; 0]);
    assert!(enable(&sandbox, program).contains(&format!("written /home/you/{server}")));
}

#[test]
fn what_breaks_nginxs_configuration_is_taken_back() {
    // A server in a server.
    let clash = "sed -i 's|include /etc/nginx/conf.d/.*|server { include /etc/nginx/conf.d/*.conf; }|' etc/nginx/nginx.conf";
    the_machines_configuration_is_tested("nginx", "nginx -t", "nginx/nginx.conf", clash);
}

/// A virtual host in what may hold none.
#[test]
fn what_breaks_apaches_configuration_is_taken_back() {
    let inside = r"<Location />\nIncludeOptional sites-enabled/metaslot.conf\n</Location>";
    let clash =
        format!("sed -i 's|^IncludeOptional sites-enabled.*|{inside}|' etc/apache2/apache2.conf");
    the_machines_configuration_is_tested("apache", "apache2ctl -t", "apache2/apache2.conf", &clash);
}

#[test]
fn what_is_enabled_is_taken_back_where_the_program_does_not_use_the_key() {
    let sandbox = with_a_key();
    if !has_own_etc(&sandbox, "true") {
        return;
    }
    sandbox.run("rm -f etc/pkcs11/modules/metaslot.module");
    let before = names(&sandbox);
    let line = "metaslot setup p11-kit --apply --enable --verify --key site --pin-source plain.pin";
    let path = "PATH=$PWD/fakes:$PATH";
    let told = sandbox.run(&format!("{path} {OWN_ETC} {line} --directory conf")).join("\n");
    assert!(told.contains("error: p11-kit does not work with what was written"), "{told}");
    assert!(told.contains("hint: what this run enabled is taken back"), "{told}");
    assert_eq!(names(&sandbox), before);
}

/// As ^C does at a terminal while nginx looks names up, for example.
#[test]
fn what_is_enabled_is_taken_back_where_its_test_is_interrupted() {
    for signal in ["INT", "TERM", "HUP"] {
        let sandbox = with_a_key();
        share(&sandbox, "nginx");
        if !has_own_etc(&sandbox, "true") {
            return;
        }
        sandbox.run("rm -f fakes/nginx etc/nginx/conf.d/metaslot.conf");
        let before = names(&sandbox);
        let test = format!(
            "#!/bin/sh\ntest -e /etc/nginx/conf.d/metaslot.conf || exit 0\nkill -{signal} $(cat $HOME/pid)\nsleep 1000\n"
        );
        sandbox.run(&format!("cat > fakes/nginx <<'END'\n{test}END\nchmod 755 fakes/nginx"));
        let line = "metaslot setup nginx --apply --enable --key site --pin-source plain.pin";
        let path = "PATH=$PWD/fakes:$PATH";
        let told = sandbox
            .run(&format!("{path} {OWN_ETC} sh -c 'echo $$ > pid; exec {line} --directory conf'"));
        assert_eq!(told, ["? killed"]);
        sandbox.run("rm fakes/nginx pid");
        assert_eq!(names(&sandbox), before, "{signal}");
    }
}

/// Before the program runs, too: what runs that were killed have left is taken away then, which takes some time.
#[test]
fn what_is_enabled_is_taken_back_where_a_signal_comes_as_it_is_written() {
    let sandbox = with_a_key();
    if !has_own_etc(&sandbox, "true") {
        return;
    }
    sandbox.run("rm -f etc/pkcs11/modules/metaslot.module fakes/p11-kit; printf '#!/bin/sh\\nsleep 1000\\n' > fakes/p11-kit; chmod 755 fakes/p11-kit");
    let before = names(&sandbox);
    let line = "metaslot setup p11-kit --apply --enable --verify --key site --pin-source plain.pin";
    for _ in 0..2 {
        sandbox.run(&format!(
            "export TMPDIR=$PWD/tmp; mkdir -p tmp/metaslot-verify-{{1..200}}/run/metaslot
             (until [ -e etc/pkcs11/modules/metaslot.module ]; do :; done; kill -INT $(cat pid)) &
             PATH=$PWD/fakes:$PATH {OWN_ETC} sh -c 'echo $$ > pid; exec {line} --directory conf'; wait; rm pid"
        ));
        assert_eq!(names(&sandbox), before);
    }
}

/// Pipes, devices and directories in the place of a file: refused at once.
#[test]
fn what_is_no_file_is_not_waited_for() {
    let sandbox = with_a_key();
    for odd in [
        "mkfifo conf/openssl.cnf",
        "ln -s /dev/zero conf/openssl.cnf.old",
        "mkdir conf/openssl.cnf",
    ] {
        sandbox.run(&format!("mkdir conf; {odd}"));
        let told = sandbox
            .run("timeout 20 metaslot setup openssl --bridge engine --apply --directory conf")
            .join("\n");
        assert!(told.contains("openssl.cnf"), "{odd}: {told}");
        assert!(told.contains("was not made by this command"), "{odd}: {told}");
        sandbox.run("rm -r conf");
    }
}

/// Its path stands in configurations that the run writes.
#[test]
fn a_temporary_directory_that_a_configuration_would_read_is_refused() {
    let sandbox = with_a_key();
    let line = "metaslot setup gnutls --verify --pin-source plain.pin --directory conf";
    let told = sandbox.run(&format!("mkdir \"t; o\"; TMPDIR=\"$PWD/t; o\" {line}; ls t*"));
    let what =
        "error: the path of the temporary directory means something to a shell: '/home/you/t; o'";
    assert_eq!(told[0], what, "{told:?}");
}

/// That user could change what root's services load.
#[test]
fn root_writes_nothing_into_the_directory_of_another_user() {
    let sandbox = with_a_key();
    sandbox.run("mkdir theirs open own && chown nobody theirs && chmod 777 open && mkdir open/own && ln -s own door && chown -h nobody door && touch root");
    if sandbox.run("[ -e root ] && [ $(stat -c %U theirs) = nobody ] && id -u") != ["0"] {
        return println!("not run: this is not root");
    }
    let before = everything(&sandbox);
    for more in ["--apply", "--apply --new more", "--verify"] {
        let (theirs, open) = ("is another user's", "may be written by every other user");
        for (place, part, why) in [
            ("theirs", "theirs", theirs),
            ("theirs/below", "theirs", theirs),
            ("door/below", "door", theirs),
            ("open", "open", open),
            ("open/own/below", "open", open),
        ] {
            let line = format!("metaslot setup openssl {more} --directory {place}");
            let told = sandbox.run(&line).join("\n");
            assert!(told.starts_with(&format!("error: /home/you/{part} {why}")), "{told}");
        }
    }
    assert_eq!(everything(&sandbox), before);
    assert_eq!(sandbox.run("ls theirs own open/own").len(), 5);
}

#[test]
fn p11_kit_is_enabled_without_a_token_or_a_key() {
    let sandbox = with_a_key();
    if !has_own_etc(&sandbox, "true") {
        return;
    }
    let line = "metaslot setup p11-kit --apply --enable --directory conf";
    for gone in [
        "key delete site --pin-source plain.pin --yes",
        "token delete web --so-pin-source so.pin --yes",
    ] {
        sandbox.run(&format!("metaslot {gone}; rm -rf conf etc/pkcs11"));
        let told = sandbox.run(&format!("PATH=$PWD/fakes:$PATH {OWN_ETC} {line}")).join("\n");
        assert!(told.contains("written /etc/pkcs11/modules/metaslot.module"), "{told}");
        assert!(told.contains("note: no key was looked at: "), "{told}");
        let told = sandbox.run("PATH=$PWD/fakes:$PATH metaslot setup p11-kit --key site");
        assert!(told[0].starts_with("error: "), "{told:?}");
    }
}

#[test]
fn root_writes_nothing_for_a_service_that_may_not_use_the_token() {
    let sandbox = with_a_key();
    if sandbox.run("id -u") != ["0"] || !sandbox.run("id www-data")[0].starts_with("uid=") {
        return println!("not run: this is not root, or there is no www-data");
    }
    let before = everything(&sandbox);
    let run = |more: &str| {
        let line = format!("metaslot setup --pin-source plain.pin --directory conf {more}");
        sandbox.run(&format!("PATH=$PWD/fakes:$PATH {line}")).join("\n")
    };
    for program in ["nginx", "apache"] {
        for more in ["--key site --apply", "--key site --apply --verify", "--apply --new more"] {
            let told = run(&format!("{program} {more}"));
            let what = format!("error: {program} could not use the key: www-data may not use ");
            assert!(told.starts_with(&what), "{told}");
            assert!(told.contains("hint: group = \"www-data\" in its [[token]] section"), "{told}");
        }
        assert!(!run(&format!("{program} --key site")).contains("error: "), "printed");
    }
    assert_eq!(everything(&sandbox), before);
    share(&sandbox, "nginx");
    assert!(run("nginx --key site --apply").contains("written"));
    // The token that is to be made is asked about, too.
    sandbox.run("chgrp root .; chmod 755 .; printf '[[token]]\npath = \"%s\"\nkdf = \"weak-for-tests\"\n' $PWD/new/token.db > metaslot.toml");
    let new = "nginx --apply --new site --directory other";
    let told = sandbox.run(&format!("PATH=$PWD/fakes:$PATH metaslot setup {new}")).join("\n");
    assert!(told.contains("hint: group = \"www-data\" in its [[token]] section, before"), "{told}");
    assert_eq!(
        sandbox.run("ls other/* new"),
        [
            "ls: cannot access 'other/*': No such file or directory",
            "ls: cannot access 'new': No such file or directory",
            "? 2"
        ]
    );
    sandbox.run("echo 'group = \"www-data\"' >> metaslot.toml");
    let told = sandbox.run(&format!("PATH=$PWD/fakes:$PATH metaslot setup {new}")).join("\n");
    assert!(!told.contains("error"), "{told}");
}

#[test]
fn a_program_that_shows_keys_by_certificates_is_not_run_without_one() {
    let sandbox = with_a_key();
    for program in ["java", "openvpn"] {
        let told = setup(&sandbox, program, "--apply --verify");
        assert!(told.contains("shows a key that has a certificate, and pkcs11:"), "{told}");
        assert!(told.contains("hint: metaslot cert selfsign "), "{told}");
        assert_eq!(
            sandbox.run("ls conf"),
            ["ls: cannot access 'conf': No such file or directory", "? 2"]
        );
    }
    sandbox.run("metaslot cert import site.pem --label site --pin-source plain.pin");
    for program in ["java", "openvpn"] {
        let told = setup(&sandbox, program, "--apply --verify");
        assert!(told.contains(&format!("error: {program} does not work")), "{told}");
    }
}

#[test]
fn nothing_is_made_for_a_service_without_its_user() {
    let sandbox = with_a_key();
    if !has_own_etc(&sandbox, "true") {
        return;
    }
    sandbox.run("sed -i /^mysql:/d etc/passwd etc/group; touch fakes/pkcs11.so");
    let before = names(&sandbox);
    let line = "metaslot setup mariadb --apply --new site --directory conf";
    let line = format!("sh -c 'unset METASLOT_CONF; export PATH=$PWD/fakes:$PATH; {line}'");
    let told = sandbox.run(&format!("OPENSSL_MODULES=$PWD/fakes {OWN_ETC} {line}"));
    assert_eq!(told[0], "error: there is no user mysql, who uses the key in mariadb", "{told:?}");
    assert_eq!(told[1], "hint: apt-get install mariadb-server makes it");
    assert_eq!(names(&sandbox), before);
}

#[test]
fn a_new_configuration_satisfies_doctor() {
    let sandbox = with_a_key();
    if !has_own_etc(&sandbox, "id www-data") {
        return;
    }
    let line =
        "metaslot setup nginx --apply --new site --directory conf && metaslot doctor | grep ^PINs";
    let line = format!("sh -c 'unset METASLOT_CONF; export PATH=$PWD/fakes:$PATH; {line}'");
    let told = sandbox.run(&format!("{OWN_ETC} {line}")).join("\n");
    assert!(told.contains("written /etc/metaslot/metaslot.toml"), "{told}");
    assert!(told.contains("PINs           ok"), "{told}");
}

/// Where every user may read the test's own directory, a user without rights asks.
#[test]
fn who_may_not_write_there_enables_nothing() {
    let sandbox = with_a_key();
    let user = "setpriv --reuid nobody --regid nogroup --clear-groups";
    sandbox.run("chmod -R a+rX . && mkdir open && chmod 777 open");
    if sandbox.run(&format!("{user} metaslot --version")).last().is_none_or(|it| it.contains('?')) {
        return println!("not run: this is not root, or another user may not run the command");
    }
    for program in ["nginx", "apache", "p11-kit"] {
        let line = format!("metaslot setup {program} --apply --enable --directory open");
        let told = sandbox.run(&format!("PATH=$PWD/fakes:$PATH {user} {line}")).join("\n");
        assert!(told.contains(&format!("error: {program} includes files of /etc")), "{told}");
        assert_eq!(sandbox.run("ls open"), [""; 0], "{program}");
    }
}
