// Carries a fault plan out on a world. Faults of one kind may overlap: what several of them hold down
// comes back when the last one lets go.

import { unreachable } from '../../../cluster/base/unreachable.ts';
import type { KvWrite } from '../../../cluster/platform/kv.ts';
import { ROW } from '../../../src/state/rows/tables.ts';
import type { SimGroup } from '../run/sim-group.ts';
import type { Copying, Pairing } from '../run/stage.ts';
import { isStateStore, LOG_STORE, STATE_STORES } from '../subject/subject.ts';
import type { SimHost } from '../world/sim-host.ts';
import type { LeavingFrame, Link } from '../world/sim-net.ts';
import type { World } from '../world/world.ts';
import { Ambushes } from './ambush.ts';
import type {
  DecidingFault,
  Direction,
  Fault,
  FaultAction,
  FaultPlan,
  FederationFault,
  MovingFault,
  Target,
} from './fault-plan.ts';
import { Holds } from './holds.ts';
import { Spoils } from './spoils.ts';

/** A datacenter leads again, and was told by the others, or has waited for them. */
const PEACE_MS = 6000;

export interface FaultsOptions {
  readonly world: World;
  readonly group: SimGroup;
  /** The hosts of each datacenter; all of them, where there is one. */
  readonly sites: readonly (readonly SimHost[])[];
  /** How long a line takes that nothing is wrong with. */
  readonly wellMs: (
    from: SimHost,
    to: SimHost,
  ) => { readonly leastMs: number; readonly meanMs: number };
  /** An operator moves the primary. False where there is nobody to ask. */
  readonly move: (action: MovingFault | DecidingFault) => boolean;
  /** Whether all disks of a datacenter may be lost, by what is promised to those who lose so much. */
  readonly mayEmpty: (site: number) => boolean;
  /** All disks of a datacenter are empty, and its servers down; it may come back as a witness. */
  readonly onEmptied: (site: number, isWitness: boolean) => void;
  /** Copies the disks of datacenters and puts them back; left out: nobody does. */
  readonly copying: Copying | undefined;
  /** Removes two datacenters at once that are lost; left out: nobody does. */
  readonly pairing: Pairing | undefined;
  /** Whether a disk may be damaged for good, or replaced, without taking too many at once. */
  readonly maySpend: (host: SimHost) => boolean;
  /** A host's disk is about to be damaged, or replaced. */
  readonly onLosing: (host: SimHost) => void;
}

export class Faults {
  readonly #options: FaultsOptions;
  readonly #cuts = new Holds<Link>({
    begin: (link) => link.cut(),
    end: (link) => link.heal(),
  });
  readonly #downs: Holds<SimHost>;
  readonly #freezes: Holds<SimHost>;
  readonly #diskFreezes = new Holds<SimHost>({
    begin: ({ disk }) => disk.freeze(),
    end: ({ disk }) => disk.thaw(),
  });
  readonly #ambushes = new Ambushes();
  readonly #spoils = new Spoils();
  readonly #fullDisks = new Holds<SimHost>({
    begin: ({ disk }) => disk.fill(),
    end: ({ disk }) => disk.free(),
  });
  /** Nothing breaks any more, not even what was to break in the course of a fault that had begun. */
  #isOver = false;
  #peaceUntilMs = 0;
  /** How many of each kind were carried out. */
  readonly counts = new Map<string, number>();

  constructor(options: FaultsOptions) {
    this.#options = options;
    const { group } = options;
    this.#downs = new Holds<SimHost>({
      begin: () => undefined,
      end: (host) => group.start(host),
    });
    this.#freezes = new Holds<SimHost>({
      begin: (host) => host.process?.freeze(),
      end: (host) => host.process?.thaw(),
    });
  }

  schedule(plan: FaultPlan): void {
    const { time } = this.#options.world;
    for (const fault of plan) time.after(fault.atMs - time.nowMs, () => this.#begin(fault));
  }

  onLanded(host: SimHost, writes: readonly KvWrite[]): void {
    this.#ambushes.onLanded(host, writes);
  }

  onFrame(leaving: LeavingFrame): void {
    this.#spoils.onFrame(leaving);
  }

  /** Everything among these hosts is well again, for good, and so are the ways of clients to them. */
  healAmong(hosts: readonly SimHost[]): void {
    const { world, group } = this.#options;
    this.#isOver = true;
    group.healClients();
    for (const host of hosts) {
      this.#freezes.endAll(host);
      this.#diskFreezes.endAll(host);
      this.#fullDisks.endAll(host);
      host.disk.speed = { leastMs: 0.2, meanMs: 1 };
      host.disk.slowed = undefined;
      for (const other of hosts) {
        const link = world.net.link(host.name, other.name);
        this.#cuts.endAll(link);
        Object.assign(link, { ...this.#options.wellMs(host, other), lossRate: 0 });
      }
      this.#downs.endAll(host);
      group.start(host);
    }
  }

  /** For good: the hosts outside can hear those inside, or be heard, or neither, or they are down. */
  breakOff(host: SimHost, inside: readonly SimHost[], how: Direction | 'down'): void {
    if (how === 'down') {
      this.#downs.begin(host);
      this.#options.group.crash(host, 'process');
      return;
    }
    for (const link of this.#linksBetween([host], inside, how)) this.#cuts.begin(link);
  }

  #begin(fault: Fault): void {
    const { world } = this.#options;
    const { kind } = fault.action;
    if (this.#isPeace) return;
    world.trace.note('fault', kind, fault.atMs, () => JSON.stringify(fault));
    if (!this.#strike(fault)) return;
    this.counts.set(kind, (this.counts.get(kind) ?? 0) + 1);
  }

  /** False where it meets nothing that it could strike. */
  #strike({ action, forMs }: Fault): boolean {
    const { world } = this.#options;
    switch (action.kind) {
      case 'crash':
        return this.#onTarget(action.target, (host) => this.#crash(host, action.ending, forMs));
      case 'blackout':
        for (const [place, host] of world.hosts.entries()) {
          this.#crash(host, 'power', forMs / 4 + place * action.staggerMs);
        }
        return true;
      case 'stop':
        return this.#onTarget(action.target, (host) => this.#stop(host, forMs));
      case 'freeze':
        return this.#onTarget(action.target, (host) => this.#freeze(host, forMs));
      case 'split': {
        const side = action.side.map((number) => world.host(number));
        const rest = world.hosts.filter((host) => !side.includes(host));
        return this.#cut(this.#linksBetween(side, rest, action.direction), forMs);
      }
      case 'isolate':
        return this.#onTarget(action.target, (host) => {
          const others = world.hosts.filter((each) => each !== host);
          this.#cut(this.#linksBetween([host], others, action.direction), forMs);
        });
      case 'cut-link':
        return this.#cut([this.#link(action.from, action.to)], forMs);
      case 'swizzle':
        return this.#swizzle(action, forMs);
      case 'transfer':
        return this.#transfer(world.host(action.to));
      case 'step-clock':
        return this.#onTarget(action.target, ({ clocks }) => {
          clocks.wallOffsetMs += action.byMs;
        });
      case 'reset-links':
        return this.#onTarget(action.target, (host) => {
          for (const other of world.hosts) world.net.reset(host.name, other.name);
        });
      case 'slow-link':
      case 'lossy-link':
        return this.#onTarget(action.target, (host) => this.#spoilLinks(host, action, forMs));
      case 'slow-disk':
      case 'slow-state':
      case 'freeze-disk':
      case 'full-disk':
        return this.#onTarget(action.target, (host) => this.#spoilDisk(host, action, forMs));
      case 'rot-log':
      case 'rot-state':
      case 'hole':
      case 'replace':
        return this.#damage(world.host(action.target), action.kind, forMs);
      default:
        return this.#strikeFederation(action, forMs);
    }
  }

  #strikeFederation(action: FederationFault, forMs: number): boolean {
    const { world } = this.#options;
    switch (action.kind) {
      case 'away': {
        const links = this.#linksBetween(
          this.#site(action.site),
          this.#outsideOf(action.site),
          action.direction,
        );
        return this.#cut(links, forMs);
      }
      case 'cut-wan':
        return this.#cut(
          this.#linksBetween(this.#site(action.from), this.#site(action.to), 'out'),
          forMs,
        );
      case 'slow-wan': {
        const { meanMs } = action;
        const links = this.#linksBetween(
          this.#site(action.site),
          this.#outsideOf(action.site),
          'both',
        );
        for (const link of links) this.#slow(link, meanMs, forMs);
        return true;
      }
      case 'reset-wan':
        for (const host of this.#site(action.site)) {
          for (const other of this.#outsideOf(action.site)) world.net.reset(host.name, other.name);
        }
        return true;
      case 'site-down':
        for (const host of this.#site(action.site)) this.#crash(host, action.ending, forMs);
        return true;
      case 'ambush':
        return this.#layAmbush(action, forMs);
      case 'misread-entry':
        return this.#onTarget(`leader of ${action.site}`, (host) =>
          misreadEntry(host, action.back),
        );
      case 'spoil':
        return this.#spoil(action, forMs);
      case 'empty-site':
        return this.#empty(action, forMs);
      case 'copy-site':
        return this.#copy(action.site, forMs);
      case 'put-back-site':
        return this.#putBack(action, forMs);
      case 'remove-two':
        return this.#removeTwo(action);
      case 'remove-site':
      case 'allow-site':
      case 'save-archive':
      case 'restore-archive':
      case 'settle-fork':
      case 'hand-over':
      case 'elect':
      case 'force':
        return this.#options.move(action);
      default:
        return unreachable(action);
    }
  }

  #layAmbush(
    { site, moment, ending }: Extract<FederationFault, { readonly kind: 'ambush' }>,
    forMs: number,
  ): boolean {
    const { world } = this.#options;
    const away = this.#ambushes.lay({
      hosts: this.#site(site),
      moment,
      strike: (host) => {
        if (this.#isPeace) return;
        world.trace.mark(`killed while it takes in: ${moment}`);
        // On disk, and whoever wrote it has not heard yet.
        this.#crash(host, ending, forMs / 4);
      },
    });
    world.time.after(forMs, away);
    return true;
  }

  #spoil(
    { site, what }: Extract<FederationFault, { readonly kind: 'spoil' }>,
    forMs: number,
  ): boolean {
    const { world } = this.#options;
    const away = this.#spoils.lay({
      to: this.#site(site).map(({ name }) => name),
      what,
      done: () => world.trace.mark(`changed on its way: ${what}`),
    });
    world.time.after(forMs, away);
    return true;
  }

  #site(number: number): readonly SimHost[] {
    return this.#options.sites[number - 1] ?? [];
  }

  #outsideOf(number: number): readonly SimHost[] {
    const own = this.#site(number);
    return this.#options.world.hosts.filter((host) => !own.includes(host));
  }

  #hostOf(target: Target): SimHost | undefined {
    const { world, group } = this.#options;
    if (typeof target === 'number') return world.host(target);
    if (target === 'leader') return group.leader(world.hosts);
    return group.leader(this.#site(Number(target.slice('leader of '.length))));
  }

  #onTarget(target: Target, strike: (host: SimHost) => void): boolean {
    const host = this.#hostOf(target);
    if (host === undefined) return false;
    strike(host);
    return true;
  }

  #crash(host: SimHost, ending: 'process' | 'power', forMs: number): void {
    this.#options.group.crash(host, ending);
    this.#hold(this.#downs, host, forMs);
  }

  #stop(host: SimHost, forMs: number): void {
    void this.#options.group.stop(host);
    this.#hold(this.#downs, host, forMs);
  }

  #freeze(host: SimHost, forMs: number): void {
    if (host.process !== undefined) this.#hold(this.#freezes, host, forMs);
  }

  #transfer(to: SimHost): boolean {
    const { group, sites } = this.#options;
    const leader = group.leader(sites.find((site) => site.includes(to)) ?? []);
    const live = leader === undefined ? undefined : group.live(leader);
    if (live === undefined || leader === to) return false;
    live.transferLeadership(to);
    return true;
  }

  #cut(links: readonly Link[], forMs: number): boolean {
    for (const link of links) this.#hold(this.#cuts, link, forMs);
    return links.length > 0;
  }

  #swizzle(
    { hosts, healOrder }: Extract<FaultAction, { readonly kind: 'swizzle' }>,
    forMs: number,
  ): boolean {
    const { world } = this.#options;
    const stepMs = forMs / (2 * hosts.length);
    for (const [place, number] of hosts.entries()) {
      const host = world.host(number);
      const others = world.hosts.filter((each) => each !== host);
      const healAtMs = forMs / 2 + healOrder.indexOf(number) * stepMs;
      const cutAtMs = place * stepMs;
      world.time.after(cutAtMs, () => {
        if (!this.#isPeace)
          this.#cut(this.#linksBetween([host], others, 'both'), healAtMs - cutAtMs);
      });
    }
    return hosts.length > 0;
  }

  #spoilLinks(
    host: SimHost,
    action: Extract<FaultAction, { readonly kind: 'slow-link' | 'lossy-link' }>,
    forMs: number,
  ): void {
    const { world } = this.#options;
    const others = world.hosts.filter((each) => each !== host);
    for (const link of this.#linksBetween([host], others, 'both')) {
      if (action.kind === 'slow-link') {
        this.#slow(link, action.meanMs, forMs);
        continue;
      }
      const { lossRate } = link;
      link.lossRate = action.rate;
      world.time.after(forMs, () => {
        link.lossRate = Math.min(lossRate, link.lossRate);
      });
    }
  }

  #slow(link: Link, meanMs: number, forMs: number): void {
    const before = link.meanMs;
    link.meanMs = meanMs;
    this.#options.world.time.after(forMs, () => {
      link.meanMs = Math.min(before, link.meanMs);
    });
  }

  #spoilDisk(
    host: SimHost,
    action: Extract<
      FaultAction,
      { readonly kind: 'slow-disk' | 'slow-state' | 'freeze-disk' | 'full-disk' }
    >,
    forMs: number,
  ): void {
    switch (action.kind) {
      case 'freeze-disk':
        this.#hold(this.#diskFreezes, host, forMs);
        return;
      case 'full-disk':
        this.#options.group.failing.add(host);
        this.#hold(this.#fullDisks, host, forMs);
        return;
      case 'slow-disk': {
        const { speed } = host.disk;
        host.disk.speed = { ...speed, meanMs: action.meanMs };
        this.#options.world.time.after(forMs, () => {
          host.disk.speed = { ...speed, meanMs: Math.min(speed.meanMs, host.disk.speed.meanMs) };
        });
        return;
      }
      case 'slow-state':
        host.disk.slowed = { prefix: STATE_STORES, meanMs: action.meanMs };
        this.#options.world.time.after(forMs, () => {
          host.disk.slowed = undefined;
        });
        return;
      default:
        unreachable(action);
    }
  }

  #damage(
    host: SimHost,
    kind: 'rot-log' | 'rot-state' | 'hole' | 'replace',
    forMs: number,
  ): boolean {
    const { group, maySpend, world, onLosing } = this.#options;
    if (!maySpend(host)) return false;
    group.crash(host, 'process');
    onLosing(host);
    if (kind === 'replace') {
      host.replaceDisk();
      group.damaged.delete(host);
    } else if (!damageDisk(host, kind, world)) {
      this.#hold(this.#downs, host, forMs);
      return false;
    } else {
      group.damaged.add(host);
    }
    this.#hold(this.#downs, host, forMs);
    return true;
  }

  #empty(
    { site, isWitness = false }: Extract<FederationFault, { readonly kind: 'empty-site' }>,
    forMs: number,
  ): boolean {
    const { group, mayEmpty, onEmptied } = this.#options;
    if (!mayEmpty(site)) return false;
    for (const host of this.#site(site)) {
      group.crash(host, 'process');
      host.replaceDisk();
      group.damaged.delete(host);
      this.#hold(this.#downs, host, forMs);
    }
    onEmptied(site, isWitness);
    return true;
  }

  #copy(site: number, forMs: number): boolean {
    const { copying } = this.#options;
    if (copying?.mayCopy(site) !== true) return false;
    for (const host of this.#site(site)) this.#crash(host, 'process', forMs);
    copying.copy(site);
    return true;
  }

  #putBack(
    { site, beside, mayBeAlone = false }: Extract<FederationFault, { kind: 'put-back-site' }>,
    forMs: number,
  ): boolean {
    const { copying, world } = this.#options;
    const sites = beside === undefined ? [site] : [site, beside];
    if (copying?.mayPutBack(sites, mayBeAlone) !== true) return false;
    // What it has sent must not come later to who is away.
    const ending = mayBeAlone ? 'power' : 'process';
    for (const host of sites.flatMap((each) => this.#site(each))) this.#crash(host, ending, forMs);
    this.#peaceUntilMs = world.time.nowMs + forMs + PEACE_MS;
    copying.putBack(sites, this.#peaceUntilMs);
    return true;
  }

  #removeTwo(action: Extract<FederationFault, { kind: 'remove-two' }>): boolean {
    const { group, pairing } = this.#options;
    if (pairing?.mayRemove(action.sites) !== true) return false;
    for (const host of action.sites.flatMap((site) => this.#site(site))) {
      group.crash(host, 'process');
      this.#downs.begin(host);
    }
    pairing.remove(action, (site) => {
      for (const host of this.#site(site)) this.#downs.end(host);
    });
    return true;
  }

  /** Nothing else breaks, so that whoever was put back is told what the others have. */
  get #isPeace(): boolean {
    const { copying, world } = this.#options;
    if (this.#isOver || world.time.nowMs < this.#peaceUntilMs) return true;
    return copying?.isCatchingUp() === true;
  }

  #hold<T>(holds: Holds<T>, what: T, forMs: number): void {
    holds.begin(what);
    this.#options.world.time.after(forMs, () => holds.end(what));
  }

  #link(from: number, to: number): Link {
    const { world } = this.#options;
    return world.net.link(world.host(from).name, world.host(to).name);
  }

  #linksBetween(
    near: readonly SimHost[],
    far: readonly SimHost[],
    direction: Direction,
  ): readonly Link[] {
    return near.flatMap((host) =>
      far.flatMap((other) => {
        const out = direction === 'in' ? [] : [this.#link(host.number, other.number)];
        return direction === 'out' ? out : [...out, this.#link(other.number, host.number)];
      }),
    );
  }
}

/** One bit in the middle of its bytes. */
function misreadEntry({ disk }: SimHost, back: number): void {
  const name = disk.storeNames.find(isStateStore);
  const state = name === undefined ? undefined : disk.store(name);
  const from = String.fromCharCode(ROW.globalEntry);
  const to = String.fromCharCode(ROW.globalEntry + 1);
  const entries = [...(state?.rows.rows({ from, to, reverse: true }) ?? [])];
  const entry = entries[back];
  if (entry === undefined) return;
  const middle = Math.floor(entry.value.length / 2);
  const value = Uint8Array.from(entry.value, (byte, at) => (at === middle ? byte ^ 4 : byte));
  state?.misread.set(entry.key, value);
}

function damageDisk(host: SimHost, kind: 'rot-log' | 'rot-state' | 'hole', world: World): boolean {
  const stream = world.stream.fork(`damage ${host.name} ${world.time.nowMs}`);
  const log = host.disk.store(LOG_STORE);
  const stateName = host.disk.storeNames.find(isStateStore);
  const state = stateName === undefined ? undefined : host.disk.store(stateName);
  if (log === undefined || state === undefined || log.rows.size === 0) return false;
  switch (kind) {
    case 'rot-log':
      return log.rot(stream) !== undefined;
    case 'rot-state': {
      const row = state.rows.at(stream.below(state.rows.size));
      if (row === undefined) return false;
      state.damagedKeys.add(row.key);
      return true;
    }
    case 'hole':
      return log.punchHole(stream);
    default:
      return unreachable(kind);
  }
}
