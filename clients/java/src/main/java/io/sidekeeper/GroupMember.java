package io.sidekeeper;

import java.time.Duration;
import java.util.Map;

/**
 * A member of a group.
 *
 * @param member its name
 * @param incarnation tells it from all that have or had its name
 * @param owner who it is, for people
 * @param metadata what others shall know of it
 * @param age how long it has been a member, by the ensemble's clock
 * @param foreign whether a client of the ensemble has made it that is not Sidekeeper's
 * @param text with foreign, what that wrote, if it is text
 * @param identity its caller's, as the sidecar that made it verified it; empty where callers are
 *     not told apart
 */
public record GroupMember(
    String member,
    long incarnation,
    String owner,
    Map<String, String> metadata,
    Duration age,
    boolean foreign,
    String text,
    String identity) {}
