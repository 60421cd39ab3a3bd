// The types of auth method, each with its validator, and the OIDC flow. Caches of remote keys live as
// long as what is returned here; nothing else is kept between calls.

import type { AuthMethod, AuthMethodType } from '../acl/auth-method.ts';
import type { AuthMethodValidator } from './auth-method-validator.ts';
import { createAwsIam } from './aws/aws-iam.ts';
import { checkNamespaceRules } from './binding/binding-names.ts';
import { createJwt } from './jwt/jwt.ts';
import { PemKeys } from './jwt/pem-keys.ts';
import { SignatureChecks } from './jwt/signature-checks.ts';
import { createKubernetes } from './kubernetes.ts';
import { createOidc, createOidcFlow, type OidcFlow } from './oidc/oidc.ts';
import { outsideOf } from './outside/outside.ts';
import { Providers } from './outside/providers.ts';
import type { Surroundings } from './outside/surroundings.ts';

export type AuthMethodTypes = Readonly<Record<AuthMethodType, AuthMethodValidator>>;

export interface AuthMethods {
  readonly types: AuthMethodTypes;
  readonly oidcFlow: OidcFlow;
}

/** Makes the validators of all types over one set of surroundings. */
export function createAuthMethods(surroundings: Surroundings): AuthMethods {
  const outside = outsideOf(surroundings);
  const context = {
    outside,
    providers: new Providers(outside),
    pemKeys: new PemKeys(),
    checks: new SignatureChecks(surroundings.clock),
  };
  return {
    types: {
      'aws-iam': withNamespaceRules(createAwsIam(outside)),
      jwt: withNamespaceRules(createJwt(context)),
      kubernetes: withNamespaceRules(createKubernetes(outside)),
      oidc: withNamespaceRules(createOidc(context)),
    },
    oidcFlow: createOidcFlow(context),
  };
}

/** Namespace rules speak of the attributes that the Config makes, so both are checked together. */
function withNamespaceRules(validator: AuthMethodValidator): AuthMethodValidator {
  return {
    ...validator,
    checkConfig: async (method: AuthMethod) => {
      // Before the check that may contact the outside, because this one is free.
      checkNamespaceRules(method.namespaceRules, validator.attributeNames(method));
      await validator.checkConfig(method);
    },
  };
}
