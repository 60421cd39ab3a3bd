// What operators decide about the datacenters of a federation. Any server of any of them takes it.

import { Deleted } from '../bodies/answers.ts';
import { endpoint } from './endpoint.ts';

const operatorWrite = {
  kind: 'write',
  path: '/v1/operator/datacenter/:name',
  access: 'operator:write',
  namespaced: false,
  answer: Deleted,
  whenEmpty: { refusal: 'Missing datacenter name' },
} as const;

export const DATACENTER_ENDPOINTS = {
  'datacenter.remove': endpoint({
    ...operatorWrite,
    method: 'DELETE',
    summary: 'Remove a datacenter: nobody waits for it any more, and its servers are refused.',
    query: {
      force:
        'Present and not `false` or `0`: also where no majority of datacenters answers, and where none of that name is known, so that none can come.',
    },
  }),
  'datacenter.allow': endpoint({
    ...operatorWrite,
    method: 'PUT',
    summary: 'Let a removed datacenter, or another one under its name, come back.',
    query: {
      force:
        'Present and not `false` or `0`: also where it follows a later reign, to which the others then yield.',
    },
  }),
};
