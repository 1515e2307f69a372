//! The tests that every namespace passes. A crate with a namespace calls [`namespace_suite!`](crate::namespace_suite) in a test.
#![allow(
    clippy::unwrap_used,
    clippy::missing_panics_doc,
    clippy::missing_errors_doc,
    missing_docs,
    reason = "these are tests"
)]

pub mod cluster;
pub mod garbage;
pub mod listing;
pub mod model;
pub mod named_puts;
pub mod permission;
pub mod puts;
pub mod targets;
pub mod trees;
pub mod whole_directories;

use std::sync::Arc;

use crate::Namespace;

/// A place where a namespace is kept.
pub trait Fixture: Send + Sync {
    /// Opens the namespace, whose administrator is `boss`. A later call, after the namespace was dropped, opens what it left.
    fn open(&self) -> Arc<dyn Namespace>;
}

/// Makes a fixture whose namespace is empty.
pub type Make<'m> = &'m dyn Fn() -> Box<dyn Fixture>;

/// Makes a module with all tests. `$make` is called for each test and returns a [`Fixture`].
#[macro_export]
macro_rules! namespace_suite {
    ($module:ident, $make:expr) => {
        $crate::namespace_suite!(
            $module,
            $make,
            [
                trees {a_tree_stays_attached_after_a_restart, a_path_belongs_to_the_tree_at_it_or_above_it, trees_are_listed_as_directories_page_by_page, trees_and_files_do_not_share_paths, a_put_that_began_before_its_path_was_attached_is_not_committed, only_administrators_change_trees_and_the_mode_says_who_reads_them, trees_have_bounds},
                garbage {garbage_is_returned_in_turn_until_it_is_collected, rewritable_objects_become_garbage_again, a_file_put_long_ago_is_forgotten_at_once},
                listing {one_level_is_listed_in_the_order_of_names, all_levels_are_listed_in_pages, a_file_in_a_list_is_what_lookup_finds, a_directory_is_there_while_a_file_lies_in_it, an_invalid_name_to_list_after_is_refused, a_page_has_its_bound},
                named_puts {every_put_is_named_until_its_objects_are_gone, administrators_are_root_and_the_chosen_user},
                permission {the_bits_of_owner_and_others_decide, an_unreadable_file_is_denied_and_not_hidden, only_the_owner_changes_the_mode, the_default_mode_lets_others_read, a_put_belongs_to_the_user_that_began_it, permission_is_checked_again_at_the_commit},
                puts {a_committed_file_is_found_as_it_was_put_also_after_a_restart, an_attempt_is_durable_and_unseen_until_it_is_committed, a_new_file_takes_the_place_of_the_old_one_which_becomes_garbage, a_repeated_commit_has_the_same_answer_until_it_is_collected, an_attempt_whose_lease_ran_out_cannot_go_on_and_becomes_garbage, renewing_counts_from_now_and_may_shorten, an_abandoned_attempt_is_garbage_and_a_commit_is_not_undone, an_invalid_file_is_refused_before_its_put_begins, a_path_is_never_both_file_and_directory, unfinished_puts_of_a_user_are_bounded},
                targets {numbers_follow_the_order_of_joining_and_stay, an_address_moves_over_only_from_a_target_without_files, an_invalid_address_and_too_many_targets_are_refused, a_target_says_whether_it_holds_files},
                whole_directories {a_moved_directory_keeps_its_files_after_a_restart, files_move_into_directories_and_over_files, one_denied_file_prevents_the_whole_change, usage_counts_only_files_below_the_directory, a_move_to_too_long_paths_is_refused},
                model {the_namespace_agrees_with_the_model}
            ]
        );
    };
    ($module:ident, $make:expr, [$($group:ident {$($test:ident),*}),*]) => {
        mod $module {
            #[allow(unused_imports)]
            use super::*;
            $($(
                #[test]
                fn $test() {
                    $crate::suite::$group::$test(&|| Box::new($make));
                }
            )*)*
        }
    };
}
