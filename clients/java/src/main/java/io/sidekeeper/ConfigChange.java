package io.sidekeeper;

/**
 * What has become of one key.
 *
 * @param entry as it is now; with deleted, only its key is set
 * @param deleted whether the key is gone
 * @param coalesced whether the key had other values in between, which are not told
 * @param recreated whether the key was deleted and made anew in between
 */
public record ConfigChange(Entry entry, boolean deleted, boolean coalesced, boolean recreated) {}
