package io.sidekeeper;

/** What to do when a group has a member of the name already. */
public enum OnConflict {
  /** Fail with MemberExistsException. */
  REJECT,
  /** Wait: for a program that was started again before its last lease has expired. */
  WAIT,
  /** End the member that is there. */
  REPLACE
}
