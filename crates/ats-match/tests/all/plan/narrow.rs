//! Plans are as narrow as they should be, form by form.

use super::read::term;
use super::{exact_key, hash_keys, order_key, ordered_ranges, parse_spec};
use crate::common::{call, list, tuple};
use ats_match::plan::{Access, Interval, Keys, LIMIT, Plan, Ranges};
use ats_term::{Term, Zeros};

fn spec_of(clauses: &[(&str, &str)]) -> Term {
    let clauses: Vec<String> = (clauses.iter())
        .map(|(head, guards)| format!("{{{head},[{guards}],[true]}}"))
        .collect();
    term(&format!("[{}]", clauses.join(",")))
}

/// Checks the ranges for an ordered table whose key is the first element.
#[track_caller]
fn expect(head: &str, guards: &str, ranges: &[&str]) {
    expect_all(&[(head, guards)], ranges);
}

#[track_caller]
fn expect_all(clauses: &[(&str, &str)], ranges: &[&str]) {
    let spec = parse_spec(&spec_of(clauses), Zeros::Distinct);
    let shown = ordered_ranges(&spec, 0).show(&spec);
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(shown, ranges, "{clauses:?}");
}

/// Checks the keys for a hash table whose key is the first element; `None` stands for all keys.
#[track_caller]
fn expect_keys(head: &str, guards: &str, keys: Option<&[&str]>) {
    let spec = parse_spec(&spec_of(&[(head, guards)]), Zeros::Distinct);
    let keys = keys.map(|keys| {
        let keys = keys
            .iter()
            .map(|key| exact_key(&term(key), Zeros::Distinct));
        let mut keys: Vec<_> = keys.collect();
        keys.sort();
        keys
    });
    let found = match hash_keys(&spec, 0) {
        Keys::All => None,
        Keys::These(mut found) => {
            found.sort();
            Some(found)
        }
    };
    assert_eq!(found, keys, "{head} {guards}");
}

const ALL: &[&str] = &["any Key"];

#[test]
fn heads_that_cannot_match() {
    for head in ["foo", "[]", "[1]", "#{}", "{}", "17", "<<\"a\">>"] {
        expect(head, "", &[]);
        expect_keys(head, "", Some(&[]));
    }
    let spec = parse_spec(&spec_of(&[("{a,b}", "")]), Zeros::Distinct);
    assert!(ordered_ranges(&spec, 2).is_empty());
    assert_eq!(ordered_ranges(&spec, 1).show(&spec), "Key =:= b\n");
}

#[test]
fn heads_without_guards() {
    expect("'_'", "", ALL);
    expect("'$1'", "", ALL);
    expect("{'$1'}", "", ALL);
    expect("{'_',foo}", "", ALL);
    expect("{foo,'_'}", "", &["Key =:= foo"]);
    expect("{1}", "", &["Key =:= 1"]);
    expect(
        "{{a,[1,2],<<\"x\">>},'$1'}",
        "",
        &["Key =:= {a,[1,2],<<120>>}"],
    );
    expect("{{a,'$1',b},'$1'}", "", &["Key = {a,_,_}"]);
    expect("{{a,{b,3,'_'},c}}", "", &["Key = {a,{b,3,_},_}"]);
    expect("{{'_',a}}", "", &["Key = {_,_}"]);
    expect("{[a,b|'_']}", "", &["Key = [a,b|_]"]);
    expect("{[a,'_',b]}", "", &["Key = [a,_|_]"]);
    expect("{[{x,'$1'},b]}", "", &["Key = [{x,_}|_]"]);
    expect("{[a|b]}", "", &["Key =:= [a|b]"]);
    expect("{#{}}", "", &["Key = map()"]);
    expect("{{a,#{b=>c},d}}", "", &["Key = {a,map(),_}"]);
    expect("{#{b=>c}}", "", &["Key = map()"]);
}

#[test]
fn comparisons() {
    for (guard, range) in [
        ("{'<','$1',5}", "Key < 5"),
        ("{'=<','$1',5}", "Key =< 5"),
        ("{'>','$1',5}", "5 < Key"),
        ("{'>=','$1',5}", "5 =< Key"),
        ("{'==','$1',5}", "Key == 5"),
        ("{'=:=','$1',5}", "Key =:= 5"),
        ("{'/=','$1',5}", "any Key"),
        ("{'=/=','$1',5}", "any Key"),
        ("{'<',5,'$1'}", "5 < Key"),
        ("{'=<',5,'$1'}", "5 =< Key"),
        ("{'>',5,'$1'}", "Key < 5"),
        ("{'>=',5,'$1'}", "Key =< 5"),
        ("{'==',5.0,'$1'}", "Key == 5.0"),
        ("{'=:=',5,'$1'}", "Key =:= 5"),
        ("{'>','$1',{const,{a,1}}}", "{a,1} < Key"),
        ("{'>','$1',{{a,{{1,[x]}}}}}", "{a,{1,[x]}} < Key"),
        ("{'>','$1',[a,{const,'$1'}|b]}", "[a,'$1'|b] < Key"),
        ("{'>','$1',#{a=>1}}", "#{a=>1} < Key"),
        ("{'>','$1',{'-',5}}", "-5 < Key"),
        ("{'>','$1',{'+',5,{'*',2,{'-',3,1}}}}", "9 < Key"),
        (
            "{'>','$1',{{x,{'+',{'div',11,2},{'rem',-7,3}}}}}",
            "{x,4} < Key",
        ),
        ("{'>','$1',{'div',5,0}}", "any Key"),
        ("{'>','$1',{self}}", "any Key"),
        ("{'>','$1','$2'}", "any Key"),
        ("{'>','$1',{{1,'$2'}}}", "any Key"),
        ("{'>','$2',5}", "any Key"),
        ("{'>',{element,1,'$_'},5}", "5 < Key"),
        ("{'>',{element,2,'$_'},5}", "any Key"),
        ("{'>',{element,'$2','$_'},5}", "any Key"),
    ] {
        expect("{'$1','$2'}", guard, &[range]);
    }
    // Each way to write the key in a guard.
    expect("'_'", "{'>',{element,1,'$_'},5}", &["5 < Key"]);
    expect("'$1'", "{'>',{element,1,'$1'},5}", &["5 < Key"]);
    expect("'$1'", "{'>',{element,2,'$1'},5}", ALL);
    expect("{'_',a}", "{'>',{element,1,'$_'},5}", &["5 < Key"]);
    expect("{'$1','$1'}", "{'>',{element,2,'$_'},5}", &["5 < Key"]);
}

#[test]
fn bounds_are_strict_where_they_should_be() {
    let contains = |guard: &str, key: &str| {
        let spec = parse_spec(&spec_of(&[("{'$1'}", guard)]), Zeros::Distinct);
        ordered_ranges(&spec, 0).contains(&order_key(&term(key), Zeros::Distinct))
    };
    for (constant, below, equal, above) in [
        ("5", "4.999999", "5.0", "5.000001"),
        ("5.0", "4", "5", "6"),
        ("-1", "-1.5", "-1.0", "-0.5"),
        ("0.0", "-1.0e-300", "-0.0", "1.0e-300"),
        (
            "9007199254740993",
            "9007199254740992.0",
            "9007199254740993",
            "9007199254740994.0",
        ),
        ("ab", "aa", "ab", "aba"),
        ("<<\"ab\">>", "<<\"aa\">>", "<<\"ab\">>", "<<\"aba\">>"),
        ("{const,{1,2}}", "{1,1.5}", "{1.0,2.0}", "{1,2.5}"),
        ("[1]", "[]", "[1.0]", "[1,a]"),
    ] {
        let is =
            |operator: &str, key: &str| contains(&format!("{{'{operator}','$1',{constant}}}"), key);
        for (operator, expected) in [
            ("<", [true, false, false]),
            ("=<", [true, true, false]),
            (">", [false, false, true]),
            (">=", [false, true, true]),
            ("==", [false, true, false]),
            ("=:=", [false, true, false]),
        ] {
            let found = [
                is(operator, below),
                is(operator, equal),
                is(operator, above),
            ];
            assert_eq!(found, expected, "{operator} {constant}");
        }
    }
}

#[test]
fn connectives() {
    for (guards, ranges) in [
        ("{'>','$1',1},{'<','$1',5}", &["1 < Key < 5"][..]),
        ("{'and',{'>','$1',1},{'<','$1',5}}", &["1 < Key < 5"]),
        ("{'andalso',{'>','$1',1},{'=<','$1',5}}", &["1 < Key =< 5"]),
        ("{'andthen',{'>','$1',1},{'=<','$1',5}}", &["1 < Key =< 5"]),
        ("{'or',{'<','$1',1},{'>','$1',5}}", &["Key < 1", "5 < Key"]),
        (
            "{'orelse',{'==','$1',1},{'>','$1',5}}",
            &["Key == 1", "5 < Key"],
        ),
        ("{'or',{'<','$1',5},{'>','$1',1}}", ALL),
        ("{'or',{'<','$1',5},{'>','$2',1}}", ALL),
        ("{'and',{'<','$1',5},{'>','$2',1}}", &["Key < 5"]),
        ("{'>','$1',5},{'<','$1',1}", &[]),
        ("{'>','$1',5},{'=<','$1',5}", &[]),
        ("{'>=','$1',5},{'=<','$1',5.0}", &["5 =< Key =< 5.0"]),
        ("{'==','$1',5},{'>','$1',4}", &["Key == 5"]),
        ("{'==','$1',5},{'>','$1',5}", &[]),
        ("{'==','$1',5},{'=:=','$1',5.0}", &["Key =:= 5.0"]),
        ("{'or',{'=:=','$1',5},{'=:=','$1',5.0}}", &["Key == 5"]),
        ("{'or',{'=:=','$1',5},{'=:=','$1',5}}", &["Key =:= 5"]),
        ("{'not',{'>','$1',5}}", &["Key =< 5"]),
        ("{'not',{'>=','$1',5}}", &["Key < 5"]),
        ("{'not',{'<','$1',5}}", &["5 =< Key"]),
        ("{'not',{'=<','$1',5}}", &["5 < Key"]),
        ("{'not',{'/=','$1',5}}", &["Key == 5"]),
        ("{'not',{'=/=','$1',5}}", &["Key =:= 5"]),
        ("{'not',{'==','$1',5}}", ALL),
        ("{'not',{'=:=','$1',5}}", ALL),
        ("{'not',{'not',{'>','$1',5}}}", &["5 < Key"]),
        (
            "{'not',{'or',{'<','$1',1},{'>','$1',5}}}",
            &["1 =< Key =< 5"],
        ),
        (
            "{'not',{'andalso',{'>=','$1',1},{'=<','$1',5}}}",
            &["Key < 1", "5 < Key"],
        ),
        ("{'xor',{'<','$1',1},{'>','$1',5}}", ALL),
        ("true,{'>','$1',5}", &["5 < Key"]),
        ("{'orelse',false,{'>','$1',5}}", &["5 < Key"]),
        ("{'orelse',true,{'>','$1',5}}", ALL),
        ("{'not',false}", ALL),
        ("false", &[]),
        ("foo", &[]),
        ("{'not',foo}", &[]),
        ("[]", &[]),
        ("{{'$1'}}", &[]),
        ("'$1'", &["Key = atom()"]),
    ] {
        expect("{'$1','$2'}", guards, ranges);
    }
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table of cases")]
fn parts_of_keys() {
    for (head, guards, ranges) in [
        (
            "{{foo,'$1'}}",
            "{'>','$1',3}",
            &["{foo,3} < Key =< {foo,_}"][..],
        ),
        (
            "{{foo,'$1'}}",
            "{'<','$1',3}",
            &["{foo,_} =< Key < {foo,3}"],
        ),
        (
            "{{foo,'$1','$2'}}",
            "{'>','$1',3},{'=<','$1',9}",
            &["{foo,3,_} < Key =< {foo,9,_}"],
        ),
        (
            "{{foo,'$1','$2'}}",
            "{'=:=','$1',3},{'>','$2',7}",
            &["{foo,3,7} < Key =< {foo,3,_}"],
        ),
        (
            "{{foo,'$1','$2'}}",
            "{'=:=','$1',3},{'==','$2',7}",
            &["Key == {foo,3,7}"],
        ),
        (
            "{{foo,'$1','$2'}}",
            "{'=:=','$1',3},{'=:=','$2',7}",
            &["Key =:= {foo,3,7}"],
        ),
        ("{{foo,'$1','$2'}}", "{'>','$2',7}", &["Key = {foo,_,_}"]),
        (
            "{{foo,'$1','$2'}}",
            "{'>','$1',3},{'==','$2',7}",
            &["{foo,3,_} < Key =< {foo,_,_}"],
        ),
        (
            "{{foo,'$1','$2'}}",
            "{'or',{'==','$1',3},{'==','$1',{const,{x}}}},{'<','$2',7}",
            &[
                "{foo,3,_} =< Key < {foo,3,7}",
                "{foo,{x},_} =< Key < {foo,{x},7}",
            ],
        ),
        (
            "{{'$1','$2'}}",
            "{'orelse',{'andalso',{'==','$1',1},{'>','$2',7}},\
             {'andalso',{'==','$1',2},{'<','$2',3}}}",
            &["{1,7} < Key =< {1,_}", "{2,_} =< Key < {2,3}"],
        ),
        (
            "{{'$1','$2'}}",
            "{'orelse',{'==','$1',1},{'>','$1',3}},{'==','$2',a}",
            &["Key == {1,a}", "{3,_} < Key =< {_,_}"],
        ),
        ("{{'$1',b,'$1'}}", "{'=:=','$1',3}", &["Key =:= {3,b,3}"]),
        (
            "{{'$1',b,'$1'}}",
            "{'or',{'==','$1',3},{'==','$1',4}}",
            &["Key == {3,b,3}", "Key == {4,b,4}"],
        ),
        (
            "{{{a,'$1'},'$2'}}",
            "{'<','$1',3}",
            &["{{a,_},_} =< Key < {{a,3},_}"],
        ),
        (
            "{{{a,'$1'},'$2'}}",
            "{'=:=','$1',3},{is_atom,'$2'}",
            &["Key = {{a,3},atom()}"],
        ),
        (
            "{[a,'$1'|'$2']}",
            "{'=:=','$1',3},{'>','$2',[7]}",
            &["[a,3|[7]] < Key =< [a,3|_]"],
        ),
        (
            "{[a,'$1'|'$2']}",
            "{'=:=','$1',3},{'=:=','$2',[]}",
            &["Key =:= [a,3]"],
        ),
        (
            "{{'_',a}}",
            "{'>',{element,1,{element,1,'$_'}},3}",
            &["{3,_} < Key =< {_,_}"],
        ),
        (
            "{{'$1','$2'}}",
            "{'>',{{'$1','$2'}},{{3,4}}}",
            &["{3,4} < Key =< {_,_}"],
        ),
        (
            "{{'$1','$2'}}",
            "{'>',{element,1,'$_'},{{3,4}}}",
            &["{3,4} < Key =< {_,_}"],
        ),
        (
            "{{'$1','$2'}}",
            "{'>',{{'$2','$1'}},{{3,4}}}",
            &["Key = {_,_}"],
        ),
        (
            "{{a,#{b=>'$1'},'$2'}}",
            "{'=:=','$1',3},{'=:=','$2',4}",
            &["Key = {a,map(),_}"],
        ),
    ] {
        expect(head, guards, ranges);
    }
}

#[test]
fn types() {
    for (guards, ranges) in [
        ("{is_integer,'$1'}", &["Key = number()"][..]),
        ("{is_float,'$1'}", &["Key = number()"]),
        ("{is_number,'$1'}", &["Key = number()"]),
        ("{is_atom,'$1'}", &["Key = atom()"]),
        ("{is_boolean,'$1'}", &["Key = atom()"]),
        ("{is_reference,'$1'}", &["Key = reference()"]),
        ("{is_function,'$1'}", &["Key = fun()"]),
        ("{is_function,'$1',2}", &["Key = fun()"]),
        ("{is_port,'$1'}", &["Key = port()"]),
        ("{is_pid,'$1'}", &["Key = pid()"]),
        ("{is_tuple,'$1'}", &["Key = tuple()"]),
        ("{is_map,'$1'}", &["Key = map()"]),
        ("{is_list,'$1'}", &["[] =< Key =< [_|_]"]),
        ("{is_binary,'$1'}", &["Key = bitstring()"]),
        ("{is_bitstring,'$1'}", &["Key = bitstring()"]),
        ("{is_record,'$1',rec,3}", &["Key = {rec,_,_}"]),
        ("{'==',{tuple_size,'$1'},3}", &["Key = {_,_,_}"]),
        ("{'=:=',3,{tuple_size,'$1'}}", &["Key = {_,_,_}"]),
        ("{'>',{tuple_size,'$1'},3}", &["Key = tuple()"]),
        ("{'==',{tuple_size,'$1'},-3}", &["Key = tuple()"]),
        ("{'>',{element,2,'$1'},3}", &["Key = tuple()"]),
        ("{'==',{hd,'$1'},3}", &["Key = [3|_]"]),
        ("{'>',{length,'$1'},3}", &["[] =< Key =< [_|_]"]),
        ("{'>',{byte_size,'$1'},3}", &["Key = bitstring()"]),
        ("{'>',{map_size,'$1'},3}", &["Key = map()"]),
        ("{is_map_key,3,'$1'}", &["Key = map()"]),
        (
            "{'>',{size,'$1'},3}",
            &["Key = tuple()", "Key = bitstring()"],
        ),
        ("{'>',{'+','$1',1},3}", &["Key = number()"]),
        ("{'not',{is_number,'$1'}}", &["number() < Key"]),
        ("{'not',{is_atom,'$1'}}", &["Key < atom()", "atom() < Key"]),
        ("{'not',{is_integer,'$1'}}", ALL),
        ("{is_atom,'$1'},{'>','$1',m}", &["m < Key =< atom()"]),
        ("{is_atom,'$1'},{'>','$1',1}", &["Key = atom()"]),
        ("{is_binary,'$1'},{is_atom,'$1'}", &[]),
        ("{is_atom,'$2'}", ALL),
        (
            "{'or',{is_atom,'$1'},{is_reference,'$1'}}",
            &["atom() =< Key =< reference()"],
        ),
    ] {
        expect("{'$1','$2'}", guards, ranges);
    }
}

#[test]
fn binary_prefixes() {
    for guard in [
        "{'=:=',{binary_part,'$1',0,2},<<\"ab\">>}",
        "{'==',{binary_part,'$1',0,2},<<\"ab\">>}",
        "{'=:=',<<\"ab\">>,{binary_part,'$1',{{0,2}}}}",
        "{'=:=',{binary_part,'$1',{const,{0,2}}},<<\"ab\">>}",
        "{'andalso',{'>=',{byte_size,'$1'},2},{'=:=',{binary_part,'$1',0,2},<<\"ab\">>}}",
    ] {
        expect("{'$1'}", guard, &["Key = <<97,98>>..."]);
        expect("{{x,'$1','_'}}", guard, &["Key = {x,<<97,98>>...,_}"]);
    }
    expect(
        "{'$1'}",
        "{'=:=',{binary_part,'$1',1,2},<<\"ab\">>}",
        &["Key = bitstring()"],
    );
    expect(
        "{'$1'}",
        "{'=:=',{binary_part,'$1','$1',2},<<\"ab\">>}",
        &[],
    );
    expect(
        "{'$1'}",
        "{'>=','$1',<<\"ab\">>},{'<','$1',<<\"ac\">>}",
        &["<<97,98>> =< Key < <<97,99>>"],
    );
    let spec = spec_of(&[("{'$1'}", "{'=:=',{binary_part,'$1',0,2},<<\"ab\">>}")]);
    let ranges = ordered_ranges(&parse_spec(&spec, Zeros::Distinct), 0);
    let contains = |key: &[u8]| ranges.contains(&order_key(&Term::binary(key), Zeros::Distinct));
    for inside in [&b"ab"[..], b"ab\0", b"abc", b"ab\xFF\xFF\xFF"] {
        assert!(contains(inside), "{inside:?}");
    }
    for outside in [&b""[..], b"a", b"aa\xFF", b"ac", b"a\0b", b"b"] {
        assert!(!contains(outside), "{outside:?}");
    }
}

#[test]
fn several_clauses() {
    expect_all(
        &[("{a,'_'}", ""), ("{b}", ""), ("{a}", "")],
        &["Key =:= a", "Key =:= b"],
    );
    expect_all(&[("{{a,'_'}}", ""), ("{{a,3}}", "")], &["Key = {a,_}"]);
    expect_all(
        &[("{'$1'}", "{'<','$1',3}"), ("{'$1'}", "{'>=','$1',3}")],
        ALL,
    );
    expect_all(
        &[("{'$1'}", "{'<','$1',3}"), ("foo", ""), ("{9}", "")],
        &["Key < 3", "Key =:= 9"],
    );
    expect_all(&[("{9}", ""), ("'_'", "")], ALL);
}

#[test]
fn keys_of_hash_tables() {
    expect_keys("{'$1'}", "", None);
    expect_keys("{42,'$1'}", "", Some(&["42"]));
    expect_keys("{{a,[1|b]},'$1'}", "", Some(&["{a,[1|b]}"]));
    expect_keys("{{a,'_'}}", "", None);
    expect_keys("{#{}}", "", None);
    expect_keys("{'$1'}", "{'=:=','$1',42}", Some(&["42"]));
    expect_keys("{'$1'}", "{'==','$1',42}", Some(&["42", "42.0"]));
    expect_keys("{'$1'}", "{'==',0,'$1'}", Some(&["0", "0.0", "-0.0"]));
    expect_keys("{'$1'}", "{'==','$1',1.5}", Some(&["1.5"]));
    expect_keys(
        "{'$1'}",
        "{'==','$1',9007199254740993}",
        Some(&["9007199254740993"]),
    );
    expect_keys(
        "{'$1'}",
        "{'==','$1',1.0e20}",
        Some(&["100000000000000000000", "1.0e20"]),
    );
    expect_keys("{'$1'}", "{'=:=','$1',{const,{1,2}}}", Some(&["{1,2}"]));
    expect_keys(
        "{'$1'}",
        "{'==','$1',{const,{1,[b,2.0|c]}}}",
        Some(&[
            "{1,[b,2|c]}",
            "{1.0,[b,2|c]}",
            "{1,[b,2.0|c]}",
            "{1.0,[b,2.0|c]}",
        ]),
    );
    // Only a number compared by == stands for several keys.
    expect_keys("{{2,'$1'}}", "{'==','$1',1}", Some(&["{2,1}", "{2,1.0}"]));
    expect_keys("{{2,'$1'}}", "{'=:=','$1',{'+',1,1}}", Some(&["{2,2}"]));
    expect_keys("{'$1'}", "{'==','$1',#{a=>1}}", None);
    expect_keys("{'$1'}", "{'==','$1',#{}}", Some(&["#{}"]));
    expect_keys("{'$1'}", "{'=:=','$1',#{a=>1}}", Some(&["#{a=>1}"]));
    expect_keys(
        "{'$1'}",
        "{'or',{'=:=','$1',1},{'=:=','$1',a}}",
        Some(&["1", "a"]),
    );
    expect_keys(
        "{'$1'}",
        "{'or',{'=:=','$1',1},{'=:=','$1',1.0}}",
        Some(&["1", "1.0"]),
    );
    expect_keys("{'$1'}", "{'=:=','$1',1},{'==','$1',1.0}", Some(&["1"]));
    expect_keys(
        "{'$1'}",
        "{'=:=','$1',1},{is_integer,'$1'},{'>','$1',0}",
        Some(&["1"]),
    );
    expect_keys("{'$1'}", "{'=:=','$1',1},{is_atom,'$1'}", Some(&[]));
    expect_keys("{'$1'}", "{'>=','$1',1},{'=<','$1',1}", None);
    expect_keys("{'$1'}", "{'or',{'=:=','$1',1},{'>','$1',5}}", None);
    expect_keys("'_'", "{'=:=',{element,1,'$_'},1}", Some(&["1"]));
    expect_keys(
        "{{'$1','$2'}}",
        "{'=:=','$1',1},{'=:=','$2',b}",
        Some(&["{1,b}"]),
    );
    expect_keys("{{'$1','$2'}}", "{'=:=','$1',1}", None);
    expect_keys(
        "{{'$1','$2'}}",
        "{'=:=',{{'$1','$2'}},{const,{1,b}}}",
        Some(&["{1,b}"]),
    );
}

#[test]
fn zeros_are_one_key_if_they_are_the_same() {
    let spec = spec_of(&[("{'$1'}", "{'==','$1',0}")]);
    let Keys::These(keys) = hash_keys(&parse_spec(&spec, Zeros::Same), 0) else {
        panic!("three numbers");
    };
    let mut expected = ["0", "0.0"].map(|number| exact_key(&term(number), Zeros::Same));
    expected.sort();
    assert_eq!(keys, expected);
}

/// Returns `{'orelse', ...}` of `count` guards.
fn one_of(count: usize, guard: impl Fn(usize) -> String) -> String {
    let guards: Vec<String> = (0..count).map(guard).collect();
    format!("{{'orelse',{}}}", guards.join(","))
}

#[test]
fn many_keys_are_looked_up_one_by_one() {
    let spec_of =
        |guards: &str| parse_spec(&spec_of(&[("{{'$1','$2'}}", guards)]), Zeros::Distinct);
    let pairs = |count| {
        one_of(count, |i| {
            format!("{{'andalso',{{'=:=','$1',{}}},{{'=:=','$2',{i}}}}}", i % 30)
        })
    };
    let spec = spec_of(&pairs(LIMIT));
    let ranges = ordered_ranges(&spec, 0);
    assert_eq!(ranges.len(), LIMIT);
    assert_eq!(Plan::for_ordered(&spec, 0).access(), Access::Points);
    assert!(matches!(hash_keys(&spec, 0), Keys::These(keys) if keys.len() == LIMIT));
    // Nested to the left, as compilers write it.
    let nested = (1..LIMIT).fold("{'=:=','$1',0}".to_owned(), |guards, i| {
        format!("{{'orelse',{guards},{{'=:=','$1',{i}}}}}")
    });
    let spec = spec_of(&format!("{nested},{{'=:=','$2',x}}"));
    assert!(matches!(hash_keys(&spec, 0), Keys::These(keys) if keys.len() == LIMIT));
    // Every pair of two sets.
    let product = |a, b| {
        let first = one_of(a, |i| format!("{{'=:=','$1',{i}}}"));
        let second = one_of(b, |i| format!("{{'=:=','$2',{i}}}"));
        spec_of(&format!("{first},{second}"))
    };
    assert!(matches!(hash_keys(&product(20, 50), 0), Keys::These(keys) if keys.len() == 1000));
    assert_eq!(hash_keys(&product(40, 50), 0), Keys::All);
    let ranges = ordered_ranges(&product(40, 50), 0);
    assert!(ranges.len() <= LIMIT && !ranges.is_everything());
    // Too many pairs: the plan gets wider, but not unlimited.
    let spec = spec_of(&pairs(LIMIT + 1));
    assert!(ordered_ranges(&spec, 0).len() <= LIMIT);
    let spec = spec_of(&one_of(3 * LIMIT, |i| format!("{{'=:=','$1',{i}}}")));
    let ranges = ordered_ranges(&spec, 0);
    assert!((LIMIT / 2..=LIMIT).contains(&ranges.len()));
    let beyond = order_key(&term("{3001,0}"), Zeros::Distinct);
    assert!(!ranges.contains(&beyond));
    assert_eq!(hash_keys(&spec, 0), Keys::All);
}

#[test]
fn many_clauses() {
    let heads: Vec<String> = (0..LIMIT).map(|i| format!("{{{{k,{i}}},'_'}}")).collect();
    let clauses: Vec<(&str, &str)> = heads.iter().map(|head| (&**head, "")).collect();
    let spec = parse_spec(&spec_of(&clauses), Zeros::Distinct);
    assert_eq!(ordered_ranges(&spec, 0).len(), LIMIT);
    assert!(matches!(hash_keys(&spec, 0), Keys::These(keys) if keys.len() == LIMIT));
}

#[test]
fn sizes_that_no_term_has() {
    for guard in [
        "{'==',{tuple_size,'$1'},1000000000000}",
        "{is_record,'$1',rec,1000000000000}",
    ] {
        let spec = parse_spec(&spec_of(&[("{'$1'}", guard)]), Zeros::Distinct);
        let ranges = ordered_ranges(&spec, 0);
        assert!(ranges.len() == 1 && !ranges.is_everything());
        assert!(ranges.show(&spec).len() < 1000);
        assert_eq!(hash_keys(&spec, 0), Keys::All);
    }
}

#[test]
fn access_in_one_word() {
    let access = |head: &str, guards: &str| {
        let spec = parse_spec(&spec_of(&[(head, guards)]), Zeros::Distinct);
        let hashed = Plan::for_hash(&spec, 0, super::exact_options(Zeros::Distinct));
        (Plan::for_ordered(&spec, 0).access(), hashed.access())
    };
    assert_eq!(access("foo", ""), (Access::Nothing, Access::Nothing));
    assert_eq!(access("{1}", ""), (Access::Points, Access::Points));
    assert_eq!(
        access("{{1,'_'}}", ""),
        (Access::Ranges, Access::Everything)
    );
    assert_eq!(access("'_'", ""), (Access::Everything, Access::Everything));
}

fn nest(depth: usize, inside: &str, wrap: impl Fn(Term) -> Term) -> Term {
    (0..depth).fold(term(inside), |part, _| wrap(part))
}

fn plans(head: Term, guard: Term) -> (Ranges, Keys) {
    let clause = tuple([head, list([guard]), term("[true]")]);
    let spec = parse_spec(&list([clause]), Zeros::Distinct);
    let (ranges, keys) = (ordered_ranges(&spec, 0), hash_keys(&spec, 0));
    assert!(ranges.show(&spec).len() < 10_000);
    (ranges, keys)
}

#[test]
fn deep_keys() {
    const DEPTH: usize = 20_000;
    let wraps: [fn(Term) -> Term; 2] = [|part| tuple([part]), |part| list([part])];
    for wrap in wraps {
        // Everything but the innermost part is known.
        let head = tuple([nest(DEPTH, "'$1'", wrap)]);
        let (ranges, keys) = plans(head.clone(), term("{'=:=','$1',7}"));
        assert!(ranges.len() == 1 && ranges.iter().all(Interval::is_point));
        assert!(matches!(keys, Keys::These(keys) if keys.len() == 1));
        let (_, keys) = plans(head, term("{'==','$1',7}"));
        assert!(matches!(keys, Keys::These(keys) if keys.len() == 2));
        let constant = call("const", [nest(DEPTH, "7", wrap)]);
        let (_, keys) = plans(term("{'$1'}"), call("==", [term("'$1'"), constant]));
        assert!(matches!(keys, Keys::These(keys) if keys.len() == 2));
        // A head too deep to analyse: the plan leaves nothing out.
        let (ranges, _) = plans(
            tuple([nest(20 * DEPTH, "'$1'", wrap)]),
            term("{'=:=','$1',7}"),
        );
        let key = order_key(&nest(20 * DEPTH, "7", wrap), Zeros::Distinct);
        assert!(ranges.contains(&key));
    }
}

#[test]
fn deep_guards() {
    const DEPTH: usize = 100_000;
    let plan = |guard: Term| plans(term("{'$1'}"), guard).0;
    let not = nest(DEPTH, "{'>','$1',7}", |part| call("not", [part]));
    assert!(!plan(not).is_everything());
    let and = nest(DEPTH, "{'>','$1',7}", |part| {
        call("andalso", [part, term("true")])
    });
    assert!(!plan(and).is_everything());
    let or = nest(500, "{'=:=','$1',7}", |part| {
        call("orelse", [part, term("{'==','$1',a}")])
    });
    assert_eq!(plan(or).len(), 2);
    // Guards nested too deeply may be ignored.
    let three = || term("3");
    plan(nest(DEPTH, "{'>','$1',7}", |part| call("hd", [part])));
    plan(call(
        ">",
        [
            three(),
            nest(DEPTH, "'$1'", |part| call("+", [part, three()])),
        ],
    ));
    plan(call(
        ">",
        [
            three(),
            nest(DEPTH, "'$_'", |part| call("element", [term("1"), part])),
        ],
    ));
    plan(call(
        ">",
        [term("'$1'"), nest(DEPTH, "7", |part| call("-", [part]))],
    ));
    plan(call(
        ">",
        [
            term("'$1'"),
            nest(DEPTH, "'$1'", |part| tuple([tuple([part])])),
        ],
    ));
    let turns = |part: Term| {
        call(
            "or",
            [call("and", [part, term("{'>','$1',3}")]), term("false")],
        )
    };
    plan(nest(DEPTH, "{'>','$1',7}", turns));
}
