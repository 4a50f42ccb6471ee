//! Tests of label and selector syntax.

use proptest::prelude::*;

use super::*;

fn values(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.into()).collect()
}

fn error(result: Result<impl fmt::Debug, LabelError>) -> String {
    result.unwrap_err().to_string()
}

#[test]
fn selectors_are_read_as_ray_reads_them() {
    let operator = |text| Selector::parse("ray.io/accelerator-type", text).unwrap().operator;
    assert_eq!(operator("H100"), Operator::In(values(&["H100"])));
    assert_eq!(operator("!spot"), Operator::NotIn(values(&["spot"])));
    assert_eq!(operator("in(A100, H100,L4)"), Operator::In(values(&["A100", "H100", "L4"])));
    assert_eq!(operator("!in(a)"), Operator::NotIn(values(&["a"])));
    assert_eq!(operator(""), Operator::In(values(&[""])));
    assert_eq!(operator("in"), Operator::In(values(&["in"])), "a value, not an operator");
}

#[test]
fn faulty_selectors_name_the_part_at_fault() {
    let error = |key, text| error(Selector::parse(key, text));
    assert_eq!(error("zone", "in()"), "selector `in()` of label `zone` lists no values");
    assert_eq!(
        error("zone", "in(a,b"),
        "selector `in(a,b` of label `zone` lacks its closing parenthesis"
    );
    for (text, part) in
        [("in(a,b!)", "b!"), ("!!a", "!a"), ("-a", "-a"), ("!", "!"), ("in(a,)", "in(a,)")]
    {
        let message = error("zone", text);
        assert!(message.starts_with(&format!("value `{part}` of label `zone`")), "{message}");
    }
    assert!(error("a b", "x").starts_with("label key `a b` is not valid"));
}

#[test]
fn labels_are_pairs() {
    let labels = parse_labels("\"region=eu, ray.io/market-type=spot,empty=\"").unwrap();
    let pairs: Vec<_> = labels.iter().map(|(key, value)| format!("{key}={value}")).collect();
    assert_eq!(pairs, ["empty=", "ray.io/market-type=spot", "region=eu"]);
    assert!(parse_labels("").unwrap().is_empty());
    assert_eq!(error(parse_labels("a=b,c")), "label `c` is not of the form key=value");
    assert_eq!(error(parse_labels("a=b=c")), "label `a=b=c` is not of the form key=value");
    assert!(error(parse_labels("a=b,,c=d")).starts_with("label `` is not"));
    assert!(error(parse_labels("a=b,.c=d")).starts_with("label key `.c`"));
    assert!(
        error(parse_labels("bad..x/c=d")).starts_with("prefix `bad..x` of label key `bad..x/c`")
    );
    assert!(error(parse_labels("/c=d")).starts_with("prefix `` of label key `/c`"));
    assert!(error(parse_labels("a=é")).starts_with("value `é` of label `a`"));
    assert_eq!(
        error(parse_labels("ray.io/node-id=1")),
        "label `ray.io/node-id` is reserved: every node gets it by itself"
    );
}

#[test]
fn names_have_at_most_63_characters_and_prefixes_253() {
    let long = |length| "x".repeat(length);
    assert!(parse_labels(&format!("{}={}", long(63), long(63))).is_ok());
    assert!(matches!(parse_labels(&format!("{}=a", long(64))), Err(LabelError::Name { .. })));
    assert!(matches!(parse_labels(&format!("a={}", long(64))), Err(LabelError::Value { .. })));
    let prefix = vec![long(49); 5].join(".");
    assert!(parse_labels(&format!("{prefix}/a=b")).is_ok());
    assert!(matches!(
        parse_labels(&format!("{}/a=b", vec![long(50); 5].join("."))),
        Err(LabelError::Prefix { .. })
    ));
}

#[test]
fn not_in_matches_those_without_the_key() {
    let labels = parse_labels("zone=a").unwrap();
    let matches = |key: &str, operator| Selector { key: key.into(), operator }.matches(&labels);
    assert!(matches("zone", Operator::In(values(&["b", "a"]))));
    assert!(!matches("zone", Operator::NotIn(values(&["b", "a"]))));
    assert!(matches("other", Operator::NotIn(values(&["a"]))));
    assert!(!matches("other", Operator::In(values(&["a"]))));
    assert!(matches("zone", Operator::Exists) && !matches("other", Operator::Exists));
    assert!(matches("other", Operator::DoesNotExist) && !matches("zone", Operator::DoesNotExist));
}

proptest! {
    /// Nothing that a user types makes the parsers panic.
    #[test]
    fn any_text_is_answered(key in ".{0,12}", text in ".{0,20}") {
        let _ = Selector::parse(&key, &text);
        let _ = parse_labels(&text);
    }
}
