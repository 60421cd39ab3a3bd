// Where V8 makes objects. By itself it makes them old from the start wherever most of those that the same code
// made before have grown old. Decoding is such code: the tokens of single reads are kept, those of lists are
// dropped with their page, and made old they lie there until all old objects are looked through.

import { setFlagsFromString } from 'node:v8';

/** All objects begin young. Said as soon as it is known that this process is a server, before it decodes. */
export function placeObjectsYoung(): void {
  setFlagsFromString('--no-allocation-site-pretenuring');
}

/** As the engine does it: for whoever keeps compiled code, which fits processes with equal options only. */
export function placeObjectsAsUsual(): void {
  setFlagsFromString('--allocation-site-pretenuring');
}
