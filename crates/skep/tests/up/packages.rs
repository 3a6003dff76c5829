//! Images that are packages, with an installer of the test's own: no network, no Node.js.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::machine::{Machine, eventually};
use super::start::Start;

/// An `npm` that knows one package, which is a shell script, and counts how often it was asked.
const NPM: &str = r#"#!/bin/sh
PATH=/usr/bin:/bin
for word; do wanted=$last; last=$word; [ "$wanted" = --prefix ] && folder=$word; done
echo "$last" >> "$ASKED"
echo "looking for $last"
case $last in good@*) ;; *) echo "npm error code E404" >&2; exit 1 ;; esac
mkdir -p "$folder/node_modules/good"
sleep 0.5
echo '{"name": "good", "bin": "run.js"}' > "$folder/node_modules/good/package.json"
echo 'echo good day; exec sleep 1000' > "$folder/node_modules/good/run.js"
"#;
/// Scripts for this `node` are shell scripts.
const NODE: &str = "#!/bin/sh\nexec /bin/sh \"$@\"\n";

/// A machine that has these tools and nothing else, and the file in which its `npm` counts.
async fn start(test: &str) -> Option<(Machine, PathBuf)> {
    let start = Start::new();
    let home = start.folder.path().join("home");
    let tools = home.join("tools/bin");
    fs::create_dir_all(&tools).unwrap();
    for (name, text) in [("npm", NPM), ("node", NODE)] {
        fs::write(tools.join(name), text).unwrap();
        fs::set_permissions(tools.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
    let asked = start.folder.path().join("asked");
    fs::write(&asked, "").unwrap();
    let machine = start.variable("PATH", &tools).variable("HOME", &home).variable("ASKED", &asked);
    Some((machine.or_skip(test).await?, asked))
}

async fn pod(machine: &Machine, name: &str, image: &str) {
    machine.pod(name, json!({"containers": [{"name": "main", "image": image}]})).await;
}

fn times(asked: &Path) -> usize {
    fs::read_to_string(asked).unwrap().lines().count()
}

fn waits(reason: &str) -> impl Fn(&Value) -> bool {
    move |status| status["containerStatuses"][0]["state"]["waiting"]["reason"] == reason
}

fn message(status: &Value) -> &str {
    status["containerStatuses"][0]["state"]["waiting"]["message"].as_str().unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_package_is_installed_once_and_heals() {
    let Some((machine, asked)) = start("a_package_is_installed_once_and_heals").await else { return };
    pod(&machine, "one", "npx://good").await;
    pod(&machine, "two", "npx://good").await;
    machine.until_printed("one", "good day").await;
    machine.until_printed("two", "good day").await;
    assert_eq!(times(&asked), 1);
    eventually("the pull is told", || async {
        let (events, said) = (machine.events("one").await, machine.said());
        let has =
            |reason: &str, start: &str| events.iter().any(|event| event.0 == reason && event.1.starts_with(start));
        let told = has("Pulling", "Pulling image \"npx://good\"") && has("Pulled", "Successfully pulled")
            || has("Pulled", "Container image \"npx://good\" already present");
        let shown = said.contains("one: Pulling image") || said.contains("two: Pulling image");
        if told && shown { Ok(()) } else { Err(format!("{events:?}\n{said}")) }
    })
    .await;
    let package = machine.folder.path().join("data/packages/npm/good@latest");
    // What somebody has removed of it, and an installation that was cut short.
    for (number, lost) in [(2, "node_modules/good/package.json"), (3, "node_modules/good/run.js"), (4, ".installed")] {
        fs::remove_file(package.join(lost)).unwrap();
        let name = format!("after-{number}");
        pod(&machine, &name, "npx://good").await;
        machine.until_printed(&name, "good day").await;
        assert_eq!(times(&asked), number, "{lost}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_cannot_be_installed_is_told_with_a_hint() {
    let Some((machine, asked)) = start("what_cannot_be_installed_is_told_with_a_hint").await else { return };
    pod(&machine, "unknown", "npx://no-such-thing@1").await;
    pod(&machine, "python", "uvx://some-server").await;
    pod(&machine, "nonsense", "npx://a/b/c").await;
    let status = machine.until("unknown", "backs off", waits("ImagePullBackOff")).await;
    assert!(message(&status).contains("npm error code E404") && message(&status).contains("hint:"), "{status:#}");
    assert!(times(&asked) >= 1);
    let status = machine.until("python", "backs off", waits("ImagePullBackOff")).await;
    assert!(message(&status).contains("uv is not installed on this machine: install uv"), "{status:#}");
    let status = machine.until("nonsense", "is refused", waits("InvalidImageName")).await;
    assert!(message(&status).contains("write npx://NAME[@VERSION]"), "{status:#}");
    let told = machine.events("unknown").await;
    assert!(told.iter().any(|event| event.0 == "Failed" && event.1.starts_with("Failed to pull image")), "{told:?}");
}
