// What tests of routes share.

import { AclError, type AclErrorCode } from '../../src/acl/error.ts';
import { policyView, readMeta } from './support.ts';

export const CONSUL = { 'x-consul-token': 's' };

export const readPolicy = () => ({ value: policyView(), meta: readMeta(10) });

export const refuse =
  (code: AclErrorCode, message = 'no') =>
  () => {
    throw new AclError(code, message);
  };
