//! Models of the history of a key, which old queries read.

use super::*;
use crate::record::history::PAGE;

/// Returns a tree and its queries. One key is written so often between them that the last version
/// is one step before one with another page of its history.
fn with_history(steps: usize) -> (Tree, Vec<ReadPoint>) {
    let tree = one_base(&[2, 6]);
    let queries = quietly(|| {
        let query_and_put = |value| {
            let query = begin(&tree);
            put(&tree, 2, value);
            query
        };
        (0..steps as u64).map(query_and_put).collect()
    });
    (tree, queries)
}

/// Checks the value that each of these queries sees.
fn see_history(tree: &CaTree<Plain>, queries: &[ReadPoint]) {
    let values = queries.iter().map(|query| {
        let guard = pin();
        let found = tree.get_at(&key(2), query.when(), &guard);
        found.expect("the key is always there").value()[0]
    });
    let values: Vec<_> = values.collect();
    let expected: Vec<_> = [2].into_iter().chain(0..).take(queries.len()).collect();
    assert_eq!(values, expected);
}

/// Old queries look for a record while a page is appended to its history.
#[test]
fn old_queries_meet_a_page_that_is_appended() {
    check(1, || {
        let (tree, queries) = with_history(2 * PAGE);
        let queries = std::sync::Arc::new(queries);
        let mine = std::sync::Arc::clone(&queries);
        together(
            &tree,
            |tree| {
                put(tree, 2, 100);
                put(tree, 2, 101);
                collect();
            },
            move |tree| see_history(tree, &mine[..2]),
        );
        quietly(|| {
            see_history(&tree, &queries);
            let queries = std::sync::Arc::into_inner(queries).expect("the thread has ended");
            for query in queries {
                tree.end(query);
            }
        });
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 101), (6, 6)]);
    });
}

/// Old queries look for a record by a history that moves from a version being passed over to the
/// one above.
#[test]
fn old_queries_meet_a_history_that_is_passed_over() {
    check(1, || {
        let (tree, mut queries) = with_history(2 * PAGE + 2);
        // Between the version with the newest page and the one above.
        let last = queries.pop().expect("there are some");
        let queries = std::sync::Arc::new(queries);
        let mine = std::sync::Arc::clone(&queries);
        quietly(|| assert!(tree.reclaim(100, &pin())));
        together(
            &tree,
            move |tree| {
                tree.end(last);
                tree.reclaim(100, &pin());
                collect();
            },
            move |tree| see_history(tree, &mine[..2]),
        );
        quietly(|| {
            see_history(&tree, &queries);
            let queries = std::sync::Arc::into_inner(queries).expect("the thread has ended");
            for query in queries {
                tree.end(query);
            }
        });
        reclaim_all(&tree);
        let last = 2 * PAGE as u64 + 1;
        assert_eq!(pairs(&tree, When::NOW), [(2, last), (6, 6)]);
    });
}

/// A writer appends a page while the history moves to the version above.
#[test]
fn a_page_is_appended_beside_a_history_that_is_passed_over() {
    check(1, || {
        let (tree, mut queries) = with_history(3 * PAGE);
        // Above the version with the newest page.
        let gone = queries.remove(2 * PAGE + 1);
        quietly(|| assert!(tree.reclaim(100, &pin())));
        together(
            &tree,
            move |tree| {
                tree.end(gone);
                tree.reclaim(100, &pin());
            },
            |tree| {
                put(tree, 2, 100);
                put(tree, 2, 101);
            },
        );
        quietly(|| {
            see_history(&tree, &queries[..2 * PAGE + 1]);
            for query in queries {
                tree.end(query);
            }
        });
        reclaim_all(&tree);
        assert_eq!(pairs(&tree, When::NOW), [(2, 101), (6, 6)]);
    });
}
