package io.sidekeeper;

/**
 * How far one incarnation of a sequence has come.
 *
 * @param lastIssued the last number that was handed out or reserved
 * @param incarnation another one tells that the sequence was deleted and made anew
 */
public record SequenceState(long lastIssued, long incarnation) {}
