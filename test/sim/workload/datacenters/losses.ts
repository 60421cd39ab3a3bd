// When nobody knows any more what a datacenter has alone: all its disks are lost, or an archive of it is restored.

export class Losses {
  readonly #counts = new Map<number, number>();
  /** Datacenters in which an archive is being restored: what is made meanwhile may be gone at any moment. */
  readonly #restoring = new Set<number>();

  isRestoring(site: number): boolean {
    return this.#restoring.has(site);
  }

  /** All disks of the datacenter are lost. */
  onEmptied(site: number): void {
    this.#restoring.delete(site);
    this.#count(site);
  }

  onRestoring(site: number): void {
    this.#restoring.add(site);
    this.#count(site);
  }

  onRestored(site: number): void {
    this.#restoring.delete(site);
    this.#count(site);
  }

  /** Called when something is asked. The result: whether an answer that comes now still says what is there. */
  watch(site: number): () => boolean {
    const count = this.#counts.get(site);
    return () => count === this.#counts.get(site) && !this.isRestoring(site);
  }

  #count(site: number): void {
    this.#counts.set(site, (this.#counts.get(site) ?? 0) + 1);
  }
}
