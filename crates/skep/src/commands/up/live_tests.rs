use super::*;

fn endpoint(name: &str, phase: &str, tools: Option<usize>) -> Endpoint {
    let url = |host: &str, path: &str| format!("http://{host}:8080{path}");
    let path = if tools.is_some() { "/mcp" } else { "" };
    Endpoint {
        kind: "Deployment".to_owned(),
        namespace: "default".to_owned(),
        name: name.to_owned(),
        transport: tools.map(|_| "streamable-http".to_owned()),
        phase: phase.to_owned(),
        ready: phase == "Ready",
        url: Some(url(name, path)),
        local_url: Some(url("127.0.0.1", path)),
        inside: None,
        tools: tools.map(|count| vec!["tool".to_owned(); count]),
        is_guarded: false,
        message: (phase == "Failed").then(|| "ErrImagePull: no such package, look for another one".to_owned()),
    }
}

fn seen(lines: &[Line]) -> Vec<String> {
    lines.iter().map(|line| format!("{line:?}").split('"').nth(1).unwrap().to_owned()).collect()
}

#[test]
fn a_picture_fits_into_its_terminal() {
    let endpoints = [endpoint("echo", "Ready", Some(9)), endpoint("broken", "Failed", None)];
    let wide = seen(&picture(&endpoints, (80, 24)));
    assert_eq!(wide[0], "NAME     TRANSPORT         PHASE    URL                         TOOLS");
    assert_eq!(wide[1], "echo     streamable-http   Ready    http://127.0.0.1:8080/mcp   9");
    assert_eq!(wide[2], "broken   -                 Failed   http://127.0.0.1:8080       -");
    assert_eq!(wide[3], "broken: ErrImagePull: no such package, look for another one");
    assert_eq!(wide[5..8], ["For MCP clients:", "{", "  \\"]);
    for (width, height) in [(80, 24), (40, 24), (40, 5), (20, 3), (1, 1)] {
        let picture = picture(&endpoints, (width, height));
        assert!(picture.len() < height.max(2), "{width}x{height}: {picture:?}");
        assert!(seen(&picture).iter().all(|line| line.chars().count() <= width), "{width}x{height}: {picture:?}");
    }
    let narrow = seen(&picture(&endpoints, (40, 24)));
    assert_eq!(narrow[1], "echo     http://127.0.0.1:8080/mcp");
}

#[test]
fn long_names_are_told_apart_and_the_phase_stays() {
    let name = |end: &str| format!("a-server-with-a-long-name-{end}");
    let endpoints = [endpoint(&name("one"), "Ready", Some(9)), endpoint(&name("two"), "Failed", None)];
    let lines = seen(&picture(&endpoints, (60, 24)));
    assert_eq!(lines[1], "a-server-wi…ng-name-one   Ready    http://127.0.0.1:8080/mcp");
    assert_eq!(lines[2], "a-server-wi…ng-name-two   Failed   http://127.0.0.1:8080");
}

#[test]
fn what_to_paste_is_said_once() {
    let mut view = View::default();
    let mut said = |endpoints: &[Endpoint]| {
        view.endpoints = endpoints.to_vec();
        view.news()
    };
    assert_eq!(said(&[endpoint("echo", "Ready", None)]).len(), 1, "nothing is known of it");
    let lines = said(&[endpoint("echo", "Ready", Some(9))]);
    assert_eq!(lines[1..4], ["For MCP clients:", "{", "  \"mcpServers\": {"]);
    assert!(said(&[endpoint("echo", "Ready", Some(9))]).is_empty());
}

#[test]
fn a_line_is_said_for_every_change() {
    let mut view = View::default();
    let now = Instant::now();
    let mut said = |endpoints: &[Endpoint]| {
        view.update(endpoints.to_vec(), now, 0);
        view.news()
    };
    assert!(said(&[endpoint("echo", "Pending", None)]).is_empty());
    assert_eq!(said(&[endpoint("echo", "Ready", None)]), ["ready    default/echo  http://127.0.0.1:8080"]);
    assert!(said(&[endpoint("echo", "Ready", None)]).is_empty());
    let failed = said(&[endpoint("echo", "Failed", None)]);
    assert_eq!(failed, ["failed   default/echo  ErrImagePull: no such package, look for another one"]);
    assert_eq!(said(&[endpoint("echo", "Pending", None)]), ["waiting  default/echo  http://127.0.0.1:8080"]);
}

#[test]
fn who_has_told_is_not_asked_again() {
    let mut view = View::default();
    let now = Instant::now();
    let ready = || vec![endpoint("echo", "Ready", None)];
    assert!(view.update(ready(), now, 0).is_empty(), "too many are asked already");
    assert_eq!(view.update(ready(), now, 9).len(), 1);
    assert!(view.update(ready(), now, 9).is_empty(), "somebody is asking");
    assert_eq!(view.update(ready(), now + ASK_AGAIN, 9).len(), 1, "nobody has answered");
    assert!(view.update(ready(), now + 2 * ASK_AGAIN, 9).is_empty(), "it may speak no MCP at all");
    assert_eq!(view.update(ready(), now + 3 * ASK_AGAIN, 9).len(), 1);
    view.remember(endpoint("echo", "Ready", Some(9)));
    assert!(view.update(ready(), now + 2 * LONGEST_WAIT, 9).is_empty());
    assert_eq!(view.endpoints[0].local_url.as_deref(), Some("http://127.0.0.1:8080/mcp"));
    assert!(view.update(vec![endpoint("echo", "Pending", None)], now, 9).is_empty());
    assert_eq!(view.update(ready(), now, 9).len(), 1, "another server may have come up");
    view.remember(Endpoint { is_guarded: true, ..endpoint("echo", "Ready", None) });
    assert!(view.update(ready(), now + 2 * LONGEST_WAIT, 9).is_empty(), "it would write down that nobody came");
}
