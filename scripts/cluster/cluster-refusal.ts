// What the local cluster does not do, in words for the person who asked, with what to do instead.

/** A wish that cannot be carried out as it is; everything else that is thrown is a fault of ours. */
export class ClusterRefusal extends Error {
  override readonly name = 'ClusterRefusal';
}
