// What the rows of the table of deployed clients name again and again.

export const ID = '7b2c0b4e-5f0a-4d7f-9d3b-1c2d3e4f5a6b';
export const GLOBAL_MANAGEMENT = '00000000-0000-0000-0000-000000000001';
export const CLAIMS = {
  first_name: 'jeff2',
  org: { primary: 'engineering' },
  'https://groups.test/groups': ['foo', 'bar'],
};
