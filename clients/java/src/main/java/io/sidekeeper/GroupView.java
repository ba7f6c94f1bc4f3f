package io.sidekeeper;

import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.security.MessageDigest;
import java.util.List;
import java.util.Optional;
import org.jspecify.annotations.Nullable;

/**
 * The members of a group.
 *
 * @param group its name
 * @param members in the order of their names
 * @param membersOmitted how many more there are that are not shown
 * @param stale from a watch, whether the ensemble or the sidecar is out of contact, so that this
 *     may be out of date
 */
public record GroupView(
    String group, List<GroupMember> members, int membersOmitted, boolean stale) {
  /**
   * Looks for a member.
   *
   * @param name of the member
   * @return the member; empty if there is none of this name
   */
  public Optional<GroupMember> member(String name) {
    return members.stream().filter(member -> member.member().equals(name)).findFirst();
  }

  /**
   * Picks the member that a key belongs to, by rendezvous hashing (Thaler and Ravishankar, 1998):
   * all who see the same members pick the same one, and when a member comes or goes, only the keys
   * change hands that are or were its own.
   *
   * <p>Of all members, it is the one whose SHA-256 of the member's name, a zero byte and the key,
   * in UTF-8, has the largest first eight bytes, read as an unsigned number with the most
   * significant byte first; of equal ones, the member that is first in the order of names.
   *
   * @param key of what is shared out among the members
   * @return the member; empty if there is none
   */
  public Optional<GroupMember> pick(String key) {
    @Nullable GroupMember best = null;
    long highest = 0;
    for (GroupMember member : members) {
      long weight = weight(member.member(), key);
      if (best == null || Long.compareUnsigned(weight, highest) > 0) {
        best = member;
        highest = weight;
      }
    }
    return Optional.ofNullable(best);
  }

  private static long weight(String member, String key) {
    MessageDigest digest = Names.sha256();
    digest.update(member.getBytes(StandardCharsets.UTF_8));
    digest.update((byte) 0);
    digest.update(key.getBytes(StandardCharsets.UTF_8));
    return ByteBuffer.wrap(digest.digest()).getLong();
  }
}
