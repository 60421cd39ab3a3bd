// What a change that has to wait asks again.

/**
 * Throws where whoever asked for a change may not have it any more. Asked right before what cannot be taken back: a
 * change may have waited, for others or for another one.
 */
export type RequireStill = () => void;
